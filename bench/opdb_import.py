#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coverage of the front end: how many entries of PyTorch's own operator data base become loop nests.

Example: python bench/opdb_import.py --only cumsum,scatter

Each entry is traced with its first sample input, decomposed with Nearbank's table and lowered. An entry is
  compiled   every operator lowers to loop nests
  partly     some operators run in eager PyTorch
  eager      nothing lowers, or what lowers is views only
  untraced   the sample cannot be traced to a static ATen graph (random shapes, views of complex numbers, …)
  wrong      its decomposed graph, or with --execute its compiled one, gives other results than the operator
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import sys
import time
import warnings

import torch
from torch.utils import _pytree as pytree


def trace(operator, sample):
    """Trace one sample; return the graph and its tensor arguments."""
    from nearbank.decompositions import decomposition_table, math_attention
    from torch._functorch.aot_autograd import aot_export_joint_simple

    leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors):
        values = list(leaves)
        for position, tensor in zip(positions, tensors, strict=True):
            values[position] = tensor
        args, kwargs = pytree.tree_unflatten(values, spec)
        result = operator(*args, **kwargs)
        return tuple(leaf.clone() for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))

    tensors = tuple(leaves[i].detach().clone() for i in positions)
    with math_attention():
        graph = aot_export_joint_simple(call, tensors, trace_joint=False, decompositions=decomposition_table())
    return graph, tensors, call


def first_sample(entry):
    """Return the first sample of an entry without empty tensors, in the first type it supports."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        if dtype in entry.supported_dtypes("cpu"):
            samples = list(itertools.islice(entry.sample_inputs("cpu", dtype), 12))
            filled = [sample for sample in samples if not is_empty(entry, sample)]
            return next(iter(filled or samples), None)
    return None


def is_empty(entry, sample) -> bool:
    """Say whether a tensor of the sample or of its result has no element."""
    try:
        result = entry.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # classify() meets it again and reports it
        result = None
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs, result))
    return any(isinstance(leaf, torch.Tensor) and leaf.numel() == 0 for leaf in leaves)


def classify(entry, policy: str = "") -> tuple[str, str]:
    """Say how far an entry compiles, and why not further; execute it where a policy is given."""
    from nearbank.fixups import normalize
    from nearbank.program import CompiledGraph
    from nearbank.settings import Settings
    from nearbank.splitting import split

    sample = first_sample(entry)
    if sample is None:
        return "untraced", "no sample input"
    try:
        graph, tensors, call = trace(entry.op, sample)
    except Exception as error:  # whatever tracing raises ends up in the table
        return "untraced", f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    execute = graph
    if policy:
        settings = Settings(policy=policy, simulate="exact" if policy == "pim-only" else "none")
        program = CompiledGraph(graph, settings, name=entry.name)
        result, execute = program.split, lambda *arguments: program.run(arguments)
    else:
        result = split(normalize(graph).graph_module)
    ops = [op for op in result.eager_ops if op.kind != "random"]
    has_program = any(piece.text is not None for piece in result.pieces)
    reason = "; ".join(sorted({f"{op.op}: {op.reason}" for op in ops}))
    is_random = any(op.kind == "random" for op in result.eager_ops)
    if not is_random and (difference := mismatch(graph, execute, tensors, call)):
        return "wrong", difference
    if not ops:
        return "compiled", "" if has_program else "views or random numbers only"
    return ("partly" if has_program else "eager"), reason


def mismatch(graph, execute, tensors, call) -> str:
    """Run the decomposed or compiled graph and compare with the operator."""
    try:
        expected = call(*[tensor.clone() for tensor in tensors])
        if any(node.target is torch.ops.higher_order.with_effects for node in graph.graph.nodes):
            return ""
        actual = [t for t in execute(*[tensor.clone() for tensor in tensors]) if isinstance(t, torch.Tensor)]
        torch.testing.assert_close(list(actual), list(expected), rtol=1e-3, atol=1e-4, equal_nan=True)
    except AssertionError as error:
        return str(error).strip().splitlines()[0]
    except Exception as error:  # whatever it is belongs into the table
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    return ""


def main() -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of entries, separated by commas")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="begin with the N-th entry")
    parser.add_argument("--execute", default="", metavar="POLICY", help="compile and execute under this policy")
    parser.add_argument("--json", default="", help="file for the table as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    names = set(options.only.split(",")) - {""}
    entries = [entry for entry in op_db if not names or entry.name in names]
    rows, started = [], time.monotonic()
    for number, entry in enumerate(entries):
        if number + 1 < options.first:
            continue
        name = f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name
        torch.manual_seed(0)
        status, reason = classify(entry, options.execute)
        rows.append({"entry": name, "status": status, "reason": reason})
        print(f"[{number + 1:4}/{len(entries)}] {name:48} {status:9} {reason[:140]}", flush=True)
    counts = collections.Counter(row["status"] for row in rows)
    print(f"\n{len(rows)} entries in {time.monotonic() - started:.0f} s")
    for status in ("compiled", "partly", "eager", "untraced", "wrong"):
        print(f"{status:10} {counts[status]:4}  {100 * counts[status] / max(1, len(rows)):5.1f} %")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
