# SPDX-License-Identifier: Apache-2.0
"""Every nest of the built-in models is found, and under pim-only really executes as RISC-V machine code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_core

pytestmark = needs_core

ROOT = Path(__file__).parents[2]
#: Batches below the defaults, where a model has one to lower: the nests are the same, only shorter.
BATCH = {"mlp": 8, "mlp-train": 8}
#: What may stand between nests: memory, views of memory, and values that are no memory.
NO_NEST = re.compile(
    r"memref\.(alloc|dealloc|get_global|subview|cast|collapse_shape|expand_shape|reinterpret_cast|transpose|load)$"
    r"|arith\.|affine\.apply$|func\.return$"
)
NEST = re.compile(r"linalg\.|memref\.copy$|scf\.|affine\.(for|parallel)$")


@dataclass
class BuiltIn:
    """A built-in model, captured, compiled and placed under pim-only."""

    name: str
    captured: Any
    graph: Any
    plan: dict[str, Any]


@pytest.fixture(scope="module", params=["minilm", "mlp", "mlp-train", "attention", "llama-tiny", "gptj-tiny"])
def built_in(request, tmp_path_factory):
    from nearbank import models
    from nearbank.capture import capture
    from nearbank.errors import UserError
    from nearbank.program import CompiledGraph
    from nearbank.settings import Settings

    try:
        module, inputs = models.build(request.param, BATCH.get(request.param))
    except UserError as error:
        if error.report.code != "NB0207":
            raise
        pytest.skip(str(error))
    captured = capture(module, inputs, training=getattr(module, "nearbank_train", False))
    database = tmp_path_factory.mktemp("database") / "profiles.sqlite"
    settings = Settings.from_options({"policy": "pim-only", "simulate": "exact", "db": str(database)}, "test")
    graph = CompiledGraph(captured.graph_module, settings, captured.parameters, captured.argument_names, request.param)
    return BuiltIn(request.param, captured, graph, graph.plan())


def find_nearbank_opt() -> str:
    named = os.environ.get("NEARBANK_OPT")
    built = sorted(ROOT.glob("build/*/compiler/tools/nearbank-opt"), key=lambda path: path.stat().st_mtime)
    found = named or (str(built[-1]) if built else shutil.which("nearbank-opt"))
    if not found:
        pytest.skip("nearbank-opt is neither in $NEARBANK_OPT, nor in build/*/compiler/tools, nor on PATH")
    return found


def operations_of_main(text: str) -> list[str]:
    """Names of the operations right inside @main: those two levels deep in MLIR's generic text form."""
    (main,) = (part for part in re.split(r'^  (?="func\.func")', text, flags=re.M) if 'sym_name = "main"' in part)
    return re.findall(r'^    (?:%\S+(?:, %\S+)* = )?"([\w.]+)"\(', main, flags=re.M)


def test_the_walk_counts_only_what_stands_in_main():
    text = (
        '"builtin.module"() ({\n'
        '  "func.func"() <{sym_name = "other"}> ({\n'
        '    "linalg.fill"(%a) : () -> ()\n'
        "  }) : () -> ()\n"
        '  "func.func"() <{sym_name = "main"}> ({\n'
        "  ^bb0(%arg0: memref<4xf32>):\n"
        '    %0 = "memref.alloc"() : () -> memref<4xf32>\n'
        '    "linalg.generic"(%arg0, %0) ({\n'
        "    ^bb0(%in: f32, %out: f32):\n"
        '      "linalg.yield"(%in) : (f32) -> ()\n'
        "    }) : () -> ()\n"
        '    %1, %2 = "scf.for"(%0) ({\n'
        '      "memref.copy"(%0, %0) : () -> ()\n'
        "    }) : () -> (f32, f32)\n"
        '    "func.return"(%0) : () -> ()\n'
        "  }) : () -> ()\n"
        "}) : () -> ()\n"
    )
    assert operations_of_main(text) == ["memref.alloc", "linalg.generic", "scf.for", "func.return"]


def test_no_nest_is_missing_from_the_candidates(built_in, tmp_path):
    tool = find_nearbank_opt()
    numbers = {"found": 0, "planned": built_in.plan["summary"]["numNests"]}
    unknown = set()
    for piece in built_in.graph.split.pieces:
        if piece.text is None:
            continue
        path = tmp_path / "piece.mlir"
        path.write_text(piece.text)
        done = subprocess.run(
            [tool, "--nearbank-buffers", "--mlir-print-op-generic", str(path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        names = operations_of_main(done.stdout)
        assert names.count("func.return") == 1
        numbers["found"] += sum(bool(NEST.match(name)) for name in names)
        assert not re.findall(r'"memref\.copy"\((%\S+), \1\)', done.stdout), "a buffer is copied onto itself"
        unknown |= {name for name in names if not NEST.match(name) and not NO_NEST.match(name)}
    assert not unknown
    assert numbers["found"] == numbers["planned"] == len(built_in.plan["nests"])
    assert numbers["found"] > 0
    assert not built_in.graph.split.eager_ops


def test_every_nest_runs_as_machine_code_of_the_pim_cores(built_in):
    """What PIM nests write is poisoned first: ExecutorTest shows that a device that does nothing leaves the poison."""
    assert {nest["where"] for nest in built_in.plan["nests"]} == {"pim"}
    outputs = built_in.graph.run(built_in.captured.arguments, poison=True)
    import torch

    eager = built_in.captured.reference(None).outputs()
    exact = built_in.captured.reference(torch.float64).outputs()
    for name, mine, theirs, truth in zip(built_in.captured.output_names, outputs, eager, exact, strict=True):
        if mine is None:
            continue
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        truth = truth.double()
        bound = 2 * (theirs.double() - truth).abs().max() + 1e-5 * truth.abs().max()
        assert (mine.double() - truth).abs().max() <= bound, name

    launches = {launch["nest"]: launch for launch in built_in.graph.record["launches"]}
    assert set(launches) == {nest["id"] for nest in built_in.plan["nests"]}
    for nest in built_in.plan["nests"]:
        launch = launches[nest["id"]]
        assert launch["site"] == "pim"
        # Cores are scalar, and a fused multiply-add is two operations.
        assert launch["instructions"] >= nest["facts"]["operations"]["floatOps"] / 2
        assert launch["instructions"] >= nest["facts"]["parallelExtent"] / 8
