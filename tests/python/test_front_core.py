# SPDX-License-Identifier: Apache-2.0
"""The front end on the real compiler and simulator: values, gradients, errors and the run document."""

from __future__ import annotations

import json
import math
import pathlib

import nearbank
import pytest
import torch
from conftest import needs_core
from front_models import Convolution, Dropout, FusedAttention, SortsInTheMiddle, TokenModel, TwoLayers
from nearbank import session
from nearbank.backend import nearbank_backend
from nearbank.errors import UserError
from torch import nn

pytestmark = [needs_core, pytest.mark.usefixtures("one_database")]

MODELS = {
    "two layers": (TwoLayers, lambda: (torch.randn(3, 8),)),
    "attention": (FusedAttention, lambda: (torch.randn(2, 5, 8),)),
    "convolution": (Convolution, lambda: (torch.randn(2, 3, 8, 8), torch.tensor([1, 4]))),
    "tokens": (TokenModel, lambda: (torch.randint(0, 10, (2, 7)), torch.randint(0, 10, (2, 7)))),
    "dropout": (Dropout, lambda: (torch.randn(3, 8),)),
    "sort": (SortsInTheMiddle, lambda: (torch.randn(3, 8),)),
}


def compiled(module, **options):
    return torch.compile(module, backend=nearbank_backend, options={"simulate": "none", "threads": 1, **options})


def exact_bound(module, inputs):
    """Outputs and gradients in float32 and float64, and the error that is allowed."""
    import copy

    results = []
    for dtype in (torch.float32, torch.float64):
        twin = copy.deepcopy(module).to(dtype)
        torch.manual_seed(0)
        out = twin(*[x.to(dtype) if x.is_floating_point() else x for x in inputs])
        out.sum().backward()
        results.append([out.detach(), *[p.grad for p in twin.parameters()]])
    for eager, truth in zip(*results, strict=True):
        yield truth, 2 * (eager.double() - truth).abs().max().item() + 1e-5 * truth.abs().max().item()


@pytest.mark.parametrize("policy", ["cpu-only", "pim-only"])
@pytest.mark.parametrize(
    "name", [pytest.param("convolution", marks=pytest.mark.slow), *sorted({*MODELS} - {"convolution"})]
)
def test_values_and_gradients_are_within_the_bound(name, policy):
    torch.manual_seed(1)
    build, make_inputs = MODELS[name]
    module, inputs = build(), make_inputs()
    expected = list(exact_bound(module, inputs))
    torch.manual_seed(0)
    simulate = "exact" if policy == "pim-only" else "none"
    out = compiled(module, policy=policy, simulate=simulate)(*inputs)
    out.sum().backward()
    actual = [out.detach(), *[p.grad for p in module.parameters()]]
    for mine, (truth, bound) in zip(actual, expected, strict=True):
        assert (mine.double() - truth).abs().max().item() <= bound
    runs = nearbank.last_report().runs
    assert [run["spec"] for run in runs] == ["model.forward", "model.backward"]
    placed = sum(run["summary"]["nestsOnPim"] for run in runs)
    assert (placed > 0) == (policy == "pim-only")


def test_what_pim_nests_write_really_comes_from_them():
    call = compiled(TwoLayers(), policy="pim-only", simulate="exact")
    x = torch.randn(3, 8)
    with torch.no_grad():
        expected = call(x)
        (graph,) = [graph for graph, _ in session._last.graphs]
        arguments = _arguments(graph, x, call)
        torch.testing.assert_close(graph.run(arguments, poison=True)[0], expected)
    assert any(launch["site"] == "pim" and launch["instructions"] > 0 for launch in graph.record["launches"])


def _arguments(graph, x, call):
    state = {tuple(p.shape): p for p in call.parameters()}
    placeholders = [n for n in graph.normal.graph_module.graph.nodes if n.op == "placeholder"]
    return [state.get(tuple(node.meta["val"].shape), x) for node in placeholders]


class Transcendentals(nn.Module):
    def forward(self, x):
        return x.exp(), torch.erf(x), x.tanh()


@pytest.mark.parametrize(
    ("policy", "machine"), [("cpu-only", "nmc-64"), ("pim-only", "nmc-64"), ("pim-only", "nmc-64v")]
)
def test_transcendentals_hold_over_their_whole_range(policy, machine):
    special = [
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        1e-30,
        -1e-30,
        88.7,
        88.8,
        200.0,
        -87.4,
        -103.0,
        -110.0,
        3.5e38,
    ]
    x = torch.cat([torch.tensor(special), torch.linspace(-12, 12, 4001), torch.logspace(-20, 2, 500)])
    results = compiled(Transcendentals(), policy=policy, machine=machine, simulate="exact")(x)
    for result, expected in zip(results, Transcendentals()(x.double()), strict=True):
        expected = expected.float()
        assert torch.equal(result.isnan(), expected.isnan())
        torch.testing.assert_close(result, expected, rtol=8e-7, atol=0, equal_nan=True)


class SumAndSums(nn.Module):
    def forward(self, x, y):
        return x + y, x.sum(1)


@pytest.mark.parametrize("width", [512, 37, 3])
def test_pim_loops_are_unrolled_at_any_length(width):
    x, y = torch.randn(64, width), torch.randn(64, width)
    total, sums = compiled(SumAndSums(), policy="pim-only", simulate="exact", set={"core.count": "1"})(x, y)
    assert torch.equal(total, x + y)
    torch.testing.assert_close(sums, x.double().sum(1).float(), rtol=0, atol=1e-6 * width)
    if width == 512:
        (graph,) = [graph for graph, _ in session._last.graphs]
        counts = sorted(launch["instructions"] / x.numel() for launch in graph.record["launches"])
        # A load and an addition; two loads, an addition and a store; a small share of a loop's overhead.
        assert counts == pytest.approx([2.5, 4.5], abs=0.4)


def test_an_index_out_of_range_is_an_index_error():
    call = compiled(nn.Embedding(10, 4), policy="cpu-only")
    call(torch.tensor([9]))
    with pytest.raises(IndexError, match="NB0301"):
        call(torch.tensor([10]))
    with pytest.raises(IndexError, match="NB0301"):
        call(torch.tensor([-1]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool])
def test_integers_and_bools_are_exact(dtype):
    class Whole(nn.Module):
        def forward(self, x, y):
            return (x & y) | (x ^ y), x == y, x.to(torch.int64).cumsum(0), (x & y).any()

    limits = (0, 2) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    x, y = torch.randint(*limits, (2, 100)).to(dtype)
    for mine, reference in zip(compiled(Whole(), policy="cpu-only")(x, y), Whole()(x, y), strict=True):
        assert mine.dtype == reference.dtype
        assert torch.equal(mine, reference)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("policy", ["cpu-only", "pim-only"])
def test_narrow_floats_are_as_precise_as_eager(dtype, policy):
    simulate = "exact" if policy == "pim-only" else "none"
    module = FusedAttention().to(dtype)
    report = nearbank.run(module, (torch.randn(2, 5, 8, dtype=dtype),), policy=policy, simulate=simulate)
    summary = report.runs[0]["summary"]
    precision = torch.finfo(dtype).eps
    assert summary["maxAbsError"]["value"] <= summary["errorBound"]["value"] + precision


@pytest.mark.parametrize("policy", ["cpu-only", "pim-only"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_nan_wins_in_extrema(dtype, policy):
    def extrema(x):
        other = x.flip(0)
        bounds = torch.clamp(x, other, 0.5 + other)
        clamped = torch.clamp(x, -0.5, 0.5), x.clamp_min(0.1), x.clamp_max(0.1), torch.nn.functional.hardtanh(x)
        return x.amax(1), x.amin(0), torch.maximum(x, other), torch.minimum(x, other), bounds, torch.relu(x), *clamped

    x = torch.randn(33, 77, generator=torch.Generator().manual_seed(3)).to(dtype)
    x[3, 5], x[4, 0], x[6, 76], x[7, 3], x[8, 3] = math.nan, math.nan, math.nan, math.inf, -math.inf
    run = torch.compile(extrema, backend=nearbank_backend, options={"policy": policy, "simulate": "exact"})
    for actual, expected in zip(run(x), extrema(x), strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def test_symbolic_shapes_run_at_each_size():
    module = TwoLayers()
    call = torch.compile(module, backend=nearbank_backend, dynamic=True, options={"policy": "cpu-only"})
    for rows in (3, 5, 1, 7):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(call(x), module(x), rtol=1e-4, atol=1e-5)


def test_an_optimizer_step_between_calls_is_seen():
    module, x = TwoLayers(), torch.randn(3, 8)
    call = compiled(module, policy="cpu-only")
    for _ in range(3):
        torch.testing.assert_close(call(x), module(x), rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.mul_(1.5)


def test_nests_of_all_pieces_are_numbered_and_selected():
    module, x = SortsInTheMiddle(), (torch.randn(3, 8),)
    (entry,) = nearbank.plan(module, x, policy="cpu-only").runs
    identifiers = [nest["id"] for nest in entry["nests"]]
    assert identifiers == [f"n{i}" for i in range(len(identifiers))]
    assert len({nest["modulePath"] for nest in entry["nests"]} & {"first", "second"}) == 2
    assert [op["op"] for op in entry["eagerOps"]] == ["aten.sort"]
    (entry,) = nearbank.plan(module, x, policy="cpu-only", pin=["second"]).runs
    chosen = {nest["modulePath"] for nest in entry["nests"] if nest["where"] == "pim"}
    assert chosen == {"second"}
    with pytest.raises(UserError, match="NB0405"):
        nearbank.plan(module, x, policy="cpu-only", pin=["third"])


def test_every_nest_has_a_source_line():
    (entry,) = nearbank.plan(FusedAttention(), (torch.randn(2, 5, 8),), policy="cpu-only").runs
    assert {nest["source"].split(":")[0].rpartition("/")[2] for nest in entry["nests"]} == {"front_models.py"}


def test_the_machine_is_checked_before_the_model_is_loaded():
    with pytest.raises(UserError, match="nmc-64"):
        nearbank.plan("does-not-exist", machine="nmc-6")


def test_the_document_follows_its_schema():
    schema = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "run.schema.json"
    jsonschema = pytest.importorskip("jsonschema")
    report = nearbank.run(TwoLayers(), (torch.randn(3, 8),), policy="two-stage", simulate="exact")
    jsonschema.validate(json.loads(report.to_json()), json.loads(schema.read_text()))
    report = nearbank.plan(TwoLayers(), (torch.randn(3, 8),), policy="two-stage")
    jsonschema.validate(json.loads(report.to_json()), json.loads(schema.read_text()))


def test_a_second_plan_profiles_nothing(tmp_path):
    inputs, database = (torch.randn(3, 8),), str(tmp_path / "profiles.sqlite")
    first = nearbank.plan(TwoLayers(), inputs, db=database).runs[0]["summary"]
    second = nearbank.plan(TwoLayers(), inputs, db=database).runs[0]["summary"]
    assert first["profiledNests"] > 0
    assert (second["profiledNests"], second["reusedProfiles"]) == (0, first["profiledNests"])
