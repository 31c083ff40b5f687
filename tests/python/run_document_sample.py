# SPDX-License-Identifier: Apache-2.0
"""Makes run documents of realistic shape and size for the tests of the reports; every number is invented."""

from __future__ import annotations

import random

# name, kind, trip counts, iterator types, operations an iteration, bytes, source line, op, host ns
_LAYER_KERNELS = [
    ("matmul_96x384x384_f32", "contraction", [96, 384, 384], 2, 0.9e6, 41, "aten.mm"),
    ("add_96x384_f32", "elementwise", [96, 384], 1, 14e3, 52, "aten.add"),
    ("matmul_3x12x32x32x32_f32", "contraction", [3, 12, 32, 32, 32], 2, 0.11e6, 63, "aten.bmm"),
    ("softmax_max_3x12x32x32_f32", "reduction", [3, 12, 32, 32], 1, 31e3, 66, "aten.softmax"),
    ("softmax_exp_3x12x32x32_f32", "elementwise", [3, 12, 32, 32], 12, 70e3, 66, "aten.softmax"),
    ("transpose_3x32x12x32_f32", "transpose", [3, 32, 12, 32], 0, 22e3, 71, "aten.permute"),
    ("mean_96x384_f32", "reduction", [96, 384], 1, 13e3, 80, "aten.native_layer_norm"),
    ("normalize_96x384_f32", "elementwise", [96, 384], 5, 24e3, 80, "aten.native_layer_norm"),
    ("matmul_96x1536x384_f32", "contraction", [96, 1536, 384], 2, 3.4e6, 91, "aten.mm"),
    ("gelu_96x1536_f32", "elementwise", [96, 1536], 14, 260e3, 95, "aten.gelu"),
    ("matmul_96x384x1536_f32", "contraction", [96, 384, 1536], 2, 3.5e6, 99, "aten.mm"),
]
_EDGE_KERNELS = [
    ("gather_96x384_f32", "gather", [96, 384], 0, 28e3, 22, "aten.embedding"),
    ("pool_3x32x384_f32", "reduction", [3, 32, 384], 1, 16e3, 120, "aten.mean"),
]


def quantity(value, unit, kind):
    """Make a quantity of the run document."""
    return {"value": value, "unit": unit, "kind": kind}


def _iterator_types(kind, trips):
    if kind in ("contraction", "reduction"):
        return ["parallel"] * (len(trips) - 1) + ["reduction"]
    return ["parallel"] * len(trips)


def _equation(identifier, text, name, value, unit, provenance, threshold):
    return {
        "id": identifier,
        "text": text,
        "inputs": [{"name": name, "value": value, "unit": unit, "provenance": provenance}],
        "value": value,
        "threshold": threshold,
        "passed": value >= threshold,
        "margin": value - threshold,
    }


def _nest(number, kernel, layer, rng, simulate, policy):
    name, kind, trips, per_iteration, host_ns, line, op = kernel
    iterations = 1
    for trip in trips:
        iterations *= trip
    types = _iterator_types(kind, trips)
    parallel = 1
    for trip, iterator in zip(trips, types, strict=True):
        parallel *= trip if iterator == "parallel" else 1
    operations = float(iterations * per_iteration)
    bytes_read, bytes_written = parallel * 4 * 2.0 + 4096, parallel * 4.0
    host = host_ns * (1 + 0.02 * rng.random())
    mpki, lfmr = round(rng.uniform(0.2, 28), 2), round(rng.uniform(0.02, 0.98), 3)
    heavy, bound = operations >= 1e5, mpki >= 10 and lfmr >= 0.4
    placed = policy == "pim-only" or (policy == "two-stage" and heavy and bound)
    predicted = operations / 64 + (bytes_read + bytes_written) / 320 + 3000
    simulated = placed and simulate == "exact"
    dram = bytes_read + bytes_written
    equations = [
        _equation("PL-1", "operations >= threshold", "operations", operations, "operations", "MLIR", 1e5),
        _equation("PL-2", "mpki >= threshold", "mpki", mpki, "misses/kiloinstruction", "host profile", 10),
        _equation("PL-2", "lfmr >= threshold", "lfmr", lfmr, "", "host profile", 0.4),
    ]
    reason = "heavy and memory-bound" if placed else ("too little work" if not heavy else "not memory-bound")
    return {
        "id": f"n{number}",
        "key": f"{abs(hash_text(name)):032x}",
        "kernel": name,
        "where": "pim" if placed else "host",
        "source": f"modeling_bert.py:{line}",
        "modulePath": f"encoder.layer.{layer}" if layer is not None else "embeddings",
        "torchOp": op,
        "kind": kind,
        "hoisted": False,
        "hostTime": quantity(round(host, 1), "ns", "measured"),
        "pimTime": quantity(round(predicted * 1.2, 1), "ns", "simulated") if simulated else None,
        "predictedPimTime": quantity(round(predicted, 1), "ns", "predicted"),
        "facts": {
            "tripCounts": trips,
            "iteratorTypes": types,
            "iterations": iterations,
            "parallelExtent": parallel,
            "operations": {
                "floatOps": operations,
                "divisions": 0,
                "transcendentals": 0,
                "integerOps": 0,
                "conversions": 0,
                "loads": iterations * 2,
                "stores": parallel,
                "total": operations,
            },
            "bytesRead": bytes_read,
            "bytesWritten": bytes_written,
            "intensity": operations / (bytes_read + bytes_written),
            "accessMaps": ["(d0, d1) -> (d0, d1)"],
            "computeType": "f32",
        },
        "profile": {
            "oneThreadTime": quantity(round(host * 1.7, 1), "ns", "measured"),
            "allThreadsTime": quantity(round(host, 1), "ns", "measured"),
            "mpki": quantity(mpki, "misses/kiloinstruction", "modelled"),
            "lfmr": quantity(lfmr, "ratio", "modelled"),
            "dramBytes": quantity(dram, "B", "modelled"),
            "dramIntensity": quantity(operations / dram, "operations/B", "modelled"),
            "source": "cache-model",
        },
        "why": {
            "status": "Placed" if placed else "KeptOnHost",
            "reason": reason,
            "suggestion": "" if placed else "pin it to PIM to see its simulated time (--pin)",
            "flip": f"mpki below 10 (is {mpki})" if placed else f"mpki of 10 or more (is {mpki})",
            "equations": equations,
        },
    }


def hash_text(text):
    """Hash a text the same way in every process."""
    value = 0
    for character in text:
        value = (value * 131 + ord(character)) % (1 << 120)
    return value


def _total(nests, key):
    return sum(nest[key]["value"] for nest in nests if nest[key])


def make_run(layers=6, policy="two-stage", simulate="exact", seed=0, machine="nmc-64", baseline=True):
    """Make one entry of ``runs``."""
    rng = random.Random(seed)
    nests = [_nest(0, _EDGE_KERNELS[0], None, rng, simulate, policy)]
    for layer in range(layers):
        for kernel in _LAYER_KERNELS:
            nests.append(_nest(len(nests), kernel, layer, random.Random(kernel[0]), simulate, policy))
    nests.append(_nest(len(nests), _EDGE_KERNELS[1], None, rng, simulate, policy))
    hoisted = _nest(
        len(nests),
        ("transpose_384x384_f32", "transpose", [384, 384], 0, 9e4, 41, "aten.t"),
        0,
        rng,
        simulate,
        "cpu-only",
    )
    hoisted.update(hoisted=True, where="host")
    hoisted["why"].update(status="NotCandidate", reason="depends on parameters only; runs once", equations=[])
    nests.append(hoisted)
    timed = [nest for nest in nests if not nest["hoisted"]]
    pim = [nest for nest in timed if nest["where"] == "pim"]
    host = [nest for nest in timed if nest["where"] == "host"]
    launches, crossings = [], []
    for nest in timed:
        if nest["where"] == "pim" and simulate == "exact":
            cycles = int(nest["pimTime"]["value"])
            launches.append(
                {
                    "nest": nest["id"],
                    "site": "pim",
                    "time": nest["pimTime"],
                    "instructions": cycles * 40,
                    "coreCycles": cycles,
                    "dramBytes": int(nest["profile"]["dramBytes"]["value"] * 1.1),
                }
            )
            crossings.append(
                {
                    "nest": nest["id"],
                    "kind": "launch",
                    "buffer": None,
                    "bytes": 0,
                    "time": quantity(2000.0, "ns", "modelled"),
                }
            )
            crossings.append(
                {
                    "nest": nest["id"],
                    "kind": "flush",
                    "buffer": "tmp3",
                    "bytes": int(nest["facts"]["bytesRead"]),
                    "time": quantity(7000.0, "ns", "modelled"),
                }
            )
        elif nest["where"] == "host" and simulate == "exact":
            launches.append(
                {
                    "nest": nest["id"],
                    "site": "host",
                    "time": nest["hostTime"],
                    "instructions": 0,
                    "coreCycles": 0,
                    "dramBytes": 0,
                }
            )
    exact = simulate == "exact"
    return {
        "spec": "minilm",
        "machine": machine,
        "policy": policy,
        "simulate": simulate,
        "threads": 2,
        "baseline": {"name": "native host", "kind": "measured", "threads": 2},
        "summary": {
            "maxAbsError": quantity(4.1e-7, "1", "measured") if exact else None,
            "eagerMaxAbsError": quantity(3.9e-7, "1", "measured") if exact else None,
            "errorBound": quantity(1.2e-5, "1", "measured") if exact else None,
            "numNests": len(nests),
            "distinctNests": len({nest["key"] for nest in nests}),
            "nestsOnPim": len(pim),
            "nestsOnHost": len(host) + 1,
            "nestsHoisted": 1,
            "hostTime": quantity(_total(timed, "hostTime"), "ns", "measured"),
            "hostTimeOfHostNests": quantity(_total(host, "hostTime"), "ns", "measured"),
            "hostTimeOfPimNests": quantity(_total(pim, "hostTime"), "ns", "measured"),
            "pimTime": quantity(_total(pim, "pimTime"), "ns", "simulated") if exact else None,
            "predictedPimTime": quantity(_total(pim, "predictedPimTime"), "ns", "predicted"),
            "crossingTime": quantity(sum(c["time"]["value"] for c in crossings), "ns", "modelled"),
            "linkBytes": quantity(sum(c["bytes"] for c in crossings), "B", "counted"),
            "dramBytes": quantity(sum(entry["dramBytes"] for entry in launches), "B", "simulated"),
            "hostDramBytes": quantity(1.2e8, "B", "modelled"),
            **dict.fromkeys(
                (
                    "modelledHostTime",
                    "modelledHostTimeOfHostNests",
                    "modelledHostTimeOfPimNests",
                    "modelledHostDramBytes",
                    "modelledHostDramBytesOfHostNests",
                    "energy",
                    "pimEnergy",
                    "linkEnergy",
                    "modelledHostEnergy",
                    "modelledHostEnergyOfHostNests",
                    "speedup",
                    "speedupInterval",
                )
            ),
            "eagerTime": quantity(21.5e6, "ns", "measured") if exact else None,
            "profiledNests": 3,
            "reusedProfiles": 11,
            "simulatedNests": 2,
            "reusedSimulations": 9,
            "verdict": "",
        },
        "nests": nests,
        "launches": launches,
        "crossings": crossings,
        "eagerOps": [
            {"op": "aten.sort", "source": "pooling.py:9", "reason": "no lowering to linalg", "kind": "unsupported"}
        ],
        "remarks": [
            {
                "status": nest["why"]["status"],
                "nest": nest["id"],
                "message": nest["why"]["reason"],
                "args": {"operations": nest["facts"]["operations"]["total"]},
            }
            for nest in nests
        ],
    }


def make_document(**options):
    """Make a whole run document with one run; options are those of `make_run`."""
    return {
        "schema": "nearbank-run-1",
        "command": ["nearbank", "run", "minilm"],
        "versions": {"nearbank": "0.1.0", "torch": "2.13.0"},
        "seed": 0,
        "host": {"name": "testhost", "cores": 2, "fingerprint": "cafe0123"},
        "runs": [make_run(**options)],
    }
