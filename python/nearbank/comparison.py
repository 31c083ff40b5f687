# SPDX-License-Identifier: Apache-2.0
"""Compares outputs with eager PyTorch and with a float64 run of the same model."""

from __future__ import annotations

from typing import Any

import torch

from nearbank.rundoc import quantity

#: The error may be this many times eager's own, plus `RELATIVE_SLACK` of the largest reference value.
EAGER_FACTOR = 2.0
RELATIVE_SLACK = 1e-5
#: Without a float64 run, this share of the largest value may lie between both results: both round differently, and
#: errors grow with the length of sums and the number of layers; about a thousand (f32) or ten (bf16) roundings.
EAGER_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 0.08, torch.float16: 0.01}


def compare_outputs(names, outputs, eager, exact) -> dict[str, Any]:
    """Measure errors over all outputs.

    Parameters
    ----------
    names : list of str
        Names of the outputs.
    outputs : list of torch.Tensor
        What Nearbank computed.
    eager : list of torch.Tensor or None
        The same from eager PyTorch; None where it has no counterpart.
    exact : list of torch.Tensor or None
        The same from eager PyTorch in float64.

    Returns
    -------
    dict
        ``maxAbsError``, ``eagerMaxAbsError`` and ``errorBound`` for the output that is closest to, or furthest beyond,
        its bound, and ``outputErrors`` for each output; integers and bools must be equal, their bound is 0.
    """
    rows = []
    for name, mine, reference, truth in zip(names, outputs, eager, exact, strict=True):
        if reference is None or truth is None or not isinstance(mine, torch.Tensor):
            continue
        rows.append(_errors(name, mine, reference, truth))
    return _summarise(rows)


def compare_with_eager(names, outputs, eager) -> dict[str, Any]:
    """Measure differences from eager PyTorch alone, where a float64 run does not fit in memory.

    Parameters
    ----------
    names, outputs, eager
        As for `compare_outputs`.

    Returns
    -------
    dict
        As `compare_outputs`, with ``eagerMaxAbsError`` None and a bound of `EAGER_TOLERANCE` of the largest value in
        each output.
    """
    rows = []
    for name, mine, reference in zip(names, outputs, eager, strict=True):
        if reference is None or not isinstance(mine, torch.Tensor):
            continue
        bound = EAGER_TOLERANCE[reference.dtype] * _scale(reference) if reference.dtype.is_floating_point else 0.0
        rows.append(
            {
                "output": name,
                "maxAbsError": quantity(_distance(mine, reference), "1", "measured"),
                "eagerMaxAbsError": None,
                "errorBound": quantity(bound, "1", "measured"),
            }
        )
    return _summarise(rows)


def _summarise(rows) -> dict[str, Any]:
    if not rows:
        return {}
    worst = max(rows, key=lambda row: _excess(row["maxAbsError"]["value"], row["errorBound"]["value"]))
    summary = {name: worst[name] for name in ("maxAbsError", "eagerMaxAbsError", "errorBound")}
    return {**summary, "outputErrors": rows}


def _scale(tensor) -> float:
    finite = tensor[torch.isfinite(tensor)].to(torch.float64)
    return finite.abs().max().item() if finite.numel() else 0.0


def _excess(error: float, bound: float) -> float:
    if bound:
        return error / bound
    return float("inf") if error else 0.0


def _errors(name, mine, reference, truth) -> dict[str, Any]:
    if mine.dtype.is_floating_point:
        truth = truth.to(torch.float64)
        error, eager_error = _distance(mine, truth), _distance(reference, truth)
        bound = EAGER_FACTOR * eager_error + RELATIVE_SLACK * _scale(truth)
    else:
        error, eager_error, bound = _distance(mine, reference), 0.0, 0.0
    return {
        "output": name,
        "maxAbsError": quantity(error, "1", "measured"),
        "eagerMaxAbsError": quantity(eager_error, "1", "measured"),
        "errorBound": quantity(bound, "1", "measured"),
    }


def _distance(tensor, truth) -> float:
    """Largest absolute difference; equal infinities and NaN on both sides count as equal."""
    tensor, truth = tensor.to(torch.float64), truth.to(torch.float64)
    if tensor.shape != truth.shape:
        return float("inf")
    same = (tensor == truth) | (torch.isnan(tensor) & torch.isnan(truth))
    difference = torch.where(same, torch.zeros((), dtype=torch.float64), (tensor - truth).abs())
    if torch.isnan(difference).any():
        return float("inf")
    return difference.max().item() if difference.numel() else 0.0
