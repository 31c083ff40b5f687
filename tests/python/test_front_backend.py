# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="nearbank"): splitting, parameters, shapes, options, errors and the last report."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
import torch
from front_models import Dropout, SortsInTheMiddle, TwoLayers
from nearbank import importer, session, splitting
from nearbank.backend import nearbank_backend
from nearbank.errors import UserError, make_error
from torch import nn


def compiled(module, dynamic=None, **options):
    return torch.compile(module, backend=nearbank_backend, dynamic=dynamic, options=options)


def graphs():
    return [graph for graph, _ in session._last.graphs]


def test_an_operator_that_cannot_be_compiled_runs_between_two_programs(fake_core):
    module, x = SortsInTheMiddle(), torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(x), module(x))
    (graph,) = graphs()
    assert [piece.text is not None for piece in graph.split.pieces] == [True, False, True]
    (op,) = graph.split.eager_ops
    assert (op.op, op.kind) == ("aten.sort", "unsupported")
    assert op.source.startswith("front_models.py:")
    assert "tm_tensor.sort" in op.reason


def test_independent_parts_stay_in_one_program(fake_core):
    class Wide(nn.Module):
        def forward(self, x):
            ordered = [torch.sort(x * i)[0] for i in (1, 2, 3)]
            return sum(part * 2 for part in ordered)

    x = torch.randn(3, 8)
    torch.testing.assert_close(compiled(Wide())(x), Wide()(x))
    (graph,) = graphs()
    assert [piece.text is not None for piece in graph.split.pieces] == [True, False, True]
    assert len(graph.split.eager_ops) == 3


def test_probes_are_remembered(fake_core, monkeypatch):
    x = torch.randn(3, 8)
    with torch.no_grad():
        compiled(SortsInTheMiddle())(x)
        torch._dynamo.reset()
        probed = []
        real = splitting.import_graphs
        monkeypatch.setattr(splitting, "import_graphs", lambda gms: probed.append(len(gms)) or real(gms))
        compiled(SortsInTheMiddle())(x)
    assert probed == [1, 0, 2]


def test_a_crash_in_the_importer_only_costs_the_operator(fake_core, monkeypatch):
    lower = importer._lower

    def crash(gm, node_locations):
        if any(node.target is torch.ops.aten.tanh.default for node in gm.graph.nodes):
            import os

            os.abort()
        return lower(gm, node_locations)

    monkeypatch.setattr(importer, "_lower", crash)
    monkeypatch.setattr(splitting, "_probe_cache", {})

    class Tanh(nn.Module):
        def forward(self, x):
            return (x * 2).tanh() + 1

    x = torch.randn(3, 8)
    torch.testing.assert_close(compiled(Tanh())(x), Tanh()(x))
    (op,) = graphs()[0].split.eager_ops
    assert (op.op, op.kind) == ("aten.tanh", "crash")


def test_a_piece_that_only_fails_as_a_whole_runs_in_eager(fake_core, monkeypatch):
    lower = importer._lower

    def fail(gm, node_locations):
        if len([node for node in gm.graph.nodes if node.op == "call_function"]) > 1:
            raise RuntimeError("too much at once")
        return lower(gm, node_locations)

    monkeypatch.setattr(importer, "_lower", fail)
    module, x = TwoLayers(), torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(x), module(x))
    assert fake_core == []
    assert {op.reason for op in graphs()[0].split.eager_ops} == {"RuntimeError: too much at once"}


def test_what_the_compiler_refuses_runs_in_eager(fake_core, monkeypatch):
    from nearbank import program

    build = program.CompiledPiece.__init__

    def refuse(self, piece, options):
        if "math.tanh" in piece.text:
            raise make_error("user", "NB0202", "the program breaks the input contract", actual="tanh is too much")
        build(self, piece, options)

    monkeypatch.setattr(program.CompiledPiece, "__init__", refuse)
    monkeypatch.setattr(splitting, "_compiled_alone", set())

    class Tanh(nn.Module):
        def forward(self, x):
            return (x * 2).tanh() + 1

    x = torch.randn(3, 9)
    torch.testing.assert_close(compiled(Tanh())(x), Tanh()(x))
    (graph,) = graphs()
    assert [(op.op, op.reason) for op in graph.split.eager_ops] == [("aten.tanh", "tanh is too much")]
    assert [piece.program is not None for piece in graph.split.pieces] == [True, False, True]


def test_on_unsupported_error_names_operator_line_and_remedy(fake_core):
    with pytest.raises(Exception) as info, torch.no_grad():
        compiled(SortsInTheMiddle(), on_unsupported="error")(torch.randn(3, 8))
    text = str(info.value)
    assert "error[NB0203]: an operator cannot be compiled" in text
    assert "aten.sort (no loop form for tm_tensor.sort" in text
    assert "front_models.py:" in text
    assert "on_unsupported=host" in text


def test_random_numbers_are_no_error(fake_core):
    compiled(Dropout(), on_unsupported="error")(torch.randn(3, 8))


def test_parameters_are_known_in_forward_and_backward(fake_core):
    module, x = TwoLayers(), torch.randn(3, 8)
    compiled(module)(x).sum().backward()
    forward, backward = fake_core
    shapes = [[tuple(v.shape) for v in _values(piece)] for piece in (forward, backward)]
    chosen = [
        {shape[i] for i in piece.options["parameters"]}
        for piece, shape in zip((forward, backward), shapes, strict=True)
    ]
    assert chosen[0] == {(16, 8), (16,), (4, 16), (4,)}
    assert (4, 16) in chosen[1] and (3, 8) not in chosen[1]


def _values(piece):
    return [node.meta["val"] for node in piece.graph_module.graph.nodes if node.op == "placeholder"]


def test_an_optimizer_outside_trains(fake_core):
    torch.manual_seed(0)
    module, other = TwoLayers(), TwoLayers()
    other.load_state_dict(module.state_dict())
    x, target = torch.randn(16, 8), torch.randn(16, 4)
    step = compiled(other)
    for model, call in ((module, module), (other, step)):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.mse_loss(call(x), target).backward()
            optimizer.step()
    for mine, reference in zip(other.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-4, atol=1e-5)
    assert len(fake_core) == 2


@pytest.mark.parametrize("training", [False, True])
def test_symbolic_shapes_are_specialised_at_the_call(fake_core, training):
    module = TwoLayers()
    call = compiled(module, dynamic=True)
    for rows in (3, 5, 3, 7):
        x = torch.randn(rows, 8)
        with torch.set_grad_enabled(training):
            out = call(x)
        torch.testing.assert_close(out, module(x))
        if training:
            out.sum().backward()
    assert len(fake_core) == (6 if training else 3)
    assert all("?" not in piece.text.split("#loc")[-1] for piece in fake_core)


def test_graph_breaks_and_new_shapes_add_to_one_report(fake_core):
    class Breaks(nn.Module):
        def forward(self, x):
            x = x * 2
            torch._dynamo.graph_break()
            return x + 1

    call = compiled(Breaks())
    torch.testing.assert_close(call(torch.ones(3)), torch.full((3,), 3.0))
    assert len(graphs()) == 2
    compiled(TwoLayers())(torch.randn(3, 8))
    assert len(graphs()) == 1
    call(torch.ones(3))
    assert len(graphs()) == 2


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ({"machin": "nmc-64"}, "NB0204", "did you mean 'machine'?"),
        ({"simulate": "exat"}, "NB0208", "did you mean 'exact'?"),
        ({"on_unsupported": "hots"}, "NB0208", "did you mean 'host'?"),
        ({"threads": -1}, "NB0208", "a non-negative integer"),
        ({"set": "vault.bandwidthGBs"}, "NB0208", "KEY=VALUE"),
    ],
)
def test_wrong_options_are_refused_with_the_nearest_name(fake_core, options, code, hint):
    with pytest.raises(Exception) as info:
        compiled(TwoLayers(), **options)(torch.randn(3, 8))
    assert f"error[{code}]" in str(info.value) and hint in str(info.value)


def test_options_reach_the_core(fake_core):
    options = {"machine": "nmc-32", "set": {"a.b": 5}, "policy": "greedy", "threads": 1, "db": "/tmp/x.sqlite"}
    compiled(TwoLayers(), name="mine", **options)(torch.randn(3, 8))
    (piece,) = fake_core
    assert piece.plan_options.pop("machine") == "nmc-32" and piece.plan_options.pop("set") == [["a.b", "5"]]
    # Compiling times nothing, on whichever host.
    assert piece.plan_options.pop("simulateHost") == "none" and "host" in piece.plan_options
    del piece.plan_options["host"]
    assert piece.options["name"] == "mine.forward"
    expected = {"policy": "greedy", "threads": 1, "db": "/tmp/x.sqlite", "simulate": "none", "pin": [], "forbid": []}
    assert piece.plan_options == expected


def test_an_index_out_of_range_is_an_index_error(fake_core, monkeypatch):
    def raise_range(self, arguments, options):
        raise UserError(make_error("internal", "NB0301", "index out of range").report)

    call = compiled(nn.Embedding(10, 4))
    call(torch.tensor([1]))
    monkeypatch.setattr(type(fake_core[0]), "run", raise_range)
    with pytest.raises(IndexError, match="NB0301"):
        call(torch.tensor([12]))


def test_inputs_of_any_layout_are_accepted(fake_core):
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    x, y = torch.randn(6, 4).t(), torch.randn(4, 12)[:, ::2]
    torch.testing.assert_close(compiled(Add())(x, y), x + y)
    torch.testing.assert_close(compiled(Add())(x.expand(4, 6), torch.randn(1, 6).expand(4, 6)).shape, x.shape)


def test_a_functional_result_never_aliases_an_argument():
    from nearbank.program import CompiledPiece

    argument = torch.arange(6.0)
    layout = {"bufferKind": "input", "argumentIndex": 0, "sizes": [3], "strides": [2], "elementOffset": 1}
    view = CompiledPiece._output(layout, [argument], [])
    assert view.tolist() == [1.0, 3.0, 5.0]
    view.zero_()
    assert argument.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    part = torch.arange(10.0)[4:]
    assert CompiledPiece._output(layout, [part], []).tolist() == [5.0, 7.0, 9.0]


def test_importing_torch_is_enough():
    points = importlib.metadata.entry_points(group="torch_dynamo_backends", name="nearbank")
    if not points:
        pytest.skip("nearbank is not installed, so that it has no entry point")
    code = "import torch; print('nearbank' in torch._dynamo.list_backends(()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "True"


def test_importing_nearbank_does_not_import_torch():
    code = "import sys, nearbank; assert 'torch' not in sys.modules; print(sorted(nearbank.__all__)[-1])"
    subprocess.run([sys.executable, "-c", code], check=True)
