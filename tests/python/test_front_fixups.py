# SPDX-License-Identifier: Apache-2.0
"""Each fix-up of the front end, through torch.compile with pieces executed in eager PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
from front_models import Convolution, Dropout, FusedAttention, RotaryTable, TokenModel, TwoLayers
from nearbank import decompositions, fixups, scatters, session
from nearbank.backend import nearbank_backend
from torch import nn

aten = torch.ops.aten


def compiled(module, **options):
    return torch.compile(module, backend=nearbank_backend, options=options)


def eager_ops():
    return [op for graph, _ in session._last.graphs for op in graph.split.eager_ops]


def check_training(module, *inputs, rtol=1e-4, atol=1e-5):
    """Loss or outputs, and all gradients, equal eager's, and everything compiles."""
    torch.manual_seed(0)
    expected = module(*inputs)
    expected.sum().backward()
    gradients = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()
    torch.manual_seed(0)
    actual = compiled(module)(*inputs)
    actual.sum().backward()
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=rtol, atol=atol)


def test_none_gradients_are_stripped_and_put_back(fake_core):
    check_training(TwoLayers(), torch.randn(3, 8))
    backward = next(piece for piece in fake_core if piece.options["name"] == "model.backward")
    assert "!torch.none" not in backward.text
    assert eager_ops() == []


@pytest.mark.parametrize("training", [False, True])
def test_attention_takes_its_mathematical_form(fake_core, training):
    module = FusedAttention()
    x = torch.randn(2, 5, 8)
    if training:
        check_training(module, x)
    else:
        with torch.no_grad():
            torch.testing.assert_close(compiled(module)(x), module(x), rtol=1e-5, atol=1e-6)
    assert fake_core and eager_ops() == []
    assert all("attention" not in piece.text.replace("front_models", "") for piece in fake_core)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_flash_attention_of_the_cpu_has_decompositions(is_causal, masked):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 7, 4, requires_grad=True) for _ in range(3))
    mask = torch.randn(1, 1, 7, 7) if masked and not is_causal else None
    flash = aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = flash(query, key, value, is_causal=is_causal, attn_mask=mask)
    mine, mine_lse = decompositions.flash_attention(query, key, value, is_causal=is_causal, attn_mask=mask)
    torch.testing.assert_close(mine, out)
    torch.testing.assert_close(mine_lse, lse)
    assert mine.stride() == out.stride()
    grad = torch.randn_like(out)
    expected = torch.autograd.grad(out, (query, key, value), grad)
    actual = decompositions.flash_attention_backward(grad, query, key, value, out, lse, 0.0, is_causal, attn_mask=mask)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_max_pool_and_cross_entropy_compile_forward_and_backward(fake_core):
    module = Convolution()
    other = Convolution()
    other.load_state_dict(module.state_dict())
    inputs = torch.randn(2, 3, 8, 8), torch.tensor([1, 4])
    compiled(other)(*inputs)
    module(*inputs)
    torch.testing.assert_close(other.norm.running_var, module.norm.running_var)
    check_training(module, *inputs)
    assert eager_ops() == []


def test_embedding_gradient_compiles(fake_core):
    check_training(TokenModel(), torch.randint(0, 10, (2, 7)), torch.randint(0, 10, (2, 7)))
    assert eager_ops() == []


def test_random_operators_run_in_eager_with_eager_numbers(fake_core):
    check_training(Dropout(), torch.randn(3, 8))
    assert {(op.op, op.kind) for op in eager_ops()} == {("aten.native_dropout", "random")}


@pytest.mark.parametrize("size", [1, 2, 5, 64, 100, 1000])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
def test_scans_equal_eager(name, size):
    x = torch.randn(3, size, dtype=torch.float64)
    actual = decompositions.decomposition_table()[getattr(aten, name).default](x, 1)
    torch.testing.assert_close(
        actual,
        getattr(torch, name)(x, 1) if "max" not in name and "min" not in name else tuple(getattr(torch, name)(x, 1)),
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool])
def test_scans_of_integers_are_exact(dtype):
    x = torch.randint(0, 2, (4, 3000)).to(dtype)
    assert torch.equal(decompositions.cumsum(x, 1), torch.cumsum(x, 1))
    assert decompositions.cumsum(x, 1).dtype == torch.int64
    values, indices = torch.randint(-5, 5, (4, 99)).cummax(1)
    again = torch.randint(-5, 5, (4, 99))
    mine = decompositions.decomposition_table()[aten.cummax.default](again, 1)
    assert all(torch.equal(a, b) for a, b in zip(mine, again.cummax(1), strict=True))


def test_scans_handle_special_values():
    x = torch.tensor([1.0, math.nan, 3.0, math.inf, -math.inf, 2.0])
    for name in ("cumsum", "cummax", "cummin"):
        mine = decompositions.decomposition_table()[getattr(aten, name).default](x, 0)
        reference = getattr(torch, name)(x, 0)
        mine, reference = (mine, reference) if name == "cumsum" else (mine[0], reference[0])
        torch.testing.assert_close(mine, reference, equal_nan=True)


@pytest.mark.parametrize(("shifts", "dims"), [([2], [1]), ([-1, 7], [0, 2]), ([5], []), ([0], [0])])
def test_roll_equals_eager(shifts, dims):
    x = torch.arange(24.0).view(2, 3, 4)
    assert torch.equal(decompositions.roll(x, shifts, dims), torch.roll(x, shifts, dims or None))


@pytest.mark.parametrize("places", [1, 4])
def test_scatters_equal_eager(places):
    x = torch.randn(3, 6)
    index = torch.stack([torch.randperm(6)[:places] for _ in range(3)])
    source = torch.randn(3, places)
    torch.testing.assert_close(scatters.scatter_src(x, 1, index, source), x.scatter(1, index, source))
    torch.testing.assert_close(scatters.scatter_value(x, 1, index, 2.5), x.scatter(1, index, 2.5))
    repeated = torch.randint(0, 6, (3, places))
    torch.testing.assert_close(scatters.scatter_add(x, 1, repeated, source), x.scatter_add(1, repeated, source))


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_scatter_reductions_equal_eager(reduce, include_self, dtype):
    x, source = torch.randn(3, 6).mul(9).to(dtype), torch.randn(3, 4).mul(9).to(dtype)
    index = torch.randint(0, 6, (3, 4))
    mine = scatters.scatter_reduce(x, 1, index, source, reduce, include_self=include_self)
    torch.testing.assert_close(mine, x.scatter_reduce(1, index, source, reduce, include_self=include_self))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_index_put_equals_eager(accumulate, dtype):
    x = torch.randn(4, 5, 6).mul(10).to(dtype)
    rows = torch.tensor([2, 0, -1])
    values = torch.randn(4, 3, 6).mul(10).to(dtype)
    torch.testing.assert_close(
        scatters.index_put(x, [None, rows], values, accumulate), aten.index_put(x, [None, rows], values, accumulate)
    )
    pair = [torch.tensor([1, 3]), torch.tensor([4, 0])]
    values = torch.randn(2, 6).mul(10).to(dtype)
    torch.testing.assert_close(
        scatters.index_put(x, pair, values, accumulate), aten.index_put(x, pair, values, accumulate)
    )
    mask = x > 0
    torch.testing.assert_close(
        scatters.index_put(x, [mask], torch.tensor(7, dtype=dtype)),
        aten.index_put(x, [mask], torch.tensor(7, dtype=dtype)),
    )


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation"), [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2)])
def test_max_pool_backward_equals_eager(kernel, stride, padding, dilation):
    x = torch.randn(2, 3, 9, 11, requires_grad=True)
    out, indices = torch.nn.functional.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    grad = torch.randn_like(out)
    mine = scatters.max_pool2d_backward(grad, x, [kernel], [stride], [padding], [dilation], False, indices)
    torch.testing.assert_close(mine, torch.autograd.grad(out, x, grad)[0])


def test_a_scatter_that_costs_too_much_is_left_alone(monkeypatch):
    monkeypatch.setattr(scatters, "COMPARISON_LIMIT", 10)
    x, index = torch.zeros(3, 6), torch.zeros(3, 2, dtype=torch.int64)
    assert scatters.scatter_add(x, 1, index, torch.ones(3, 2)) is NotImplemented


def test_buffers_outside_the_state_are_parameters(fake_core):
    from nearbank.capture import capture

    captured = capture(RotaryTable(), (torch.randn(3, 8),))
    assert captured.argument_names == ["table", "input0"]
    assert captured.parameters == [0]
    x = torch.randn(3, 8)
    torch.testing.assert_close(compiled(RotaryTable())(x), RotaryTable()(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats_import_with_constants(fake_core, dtype):
    class Narrow(nn.Module):
        def forward(self, x):
            return x * torch.tensor([1.5, 2.5, 3.0, 4.0], dtype=dtype) + torch.full((), 0.125, dtype=dtype)

    x = torch.randn(3, 4, dtype=dtype)
    torch.testing.assert_close(compiled(Narrow())(x), Narrow()(x))
    assert eager_ops() == []
    assert f"x{'bf16' if dtype == torch.bfloat16 else 'f16'}>" in fake_core[0].text


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool])
def test_integers_and_bools_import(fake_core, dtype):
    class Whole(nn.Module):
        def forward(self, x, y):
            return (x & y) | (x ^ y), x == y

    x, y = torch.randint(0, 2, (2, 9)).to(dtype)
    for mine, reference in zip(compiled(Whole())(x, y), Whole()(x, y), strict=True):
        assert torch.equal(mine, reference)
    assert eager_ops() == []


def test_numbers_inputs_and_repeats_among_the_outputs(fake_core):
    class Mixed(nn.Module):
        def forward(self, x):
            doubled = x * 2
            return x.shape[0], x, doubled, doubled, None, doubled.sum(), x.t()

    x = torch.randn(3, 5)
    outputs = compiled(Mixed())(x)
    assert outputs[0] == 3 and outputs[4] is None
    assert outputs[1] is x
    torch.testing.assert_close(outputs[2], x * 2)
    torch.testing.assert_close(outputs[3], x * 2)
    assert outputs[5].shape == ()
    outputs[6].zero_()
    assert x.abs().sum() == 0


def test_outputs_keep_the_strides_that_eager_gives(fake_core):
    class Transposed(nn.Module):
        def forward(self, x):
            base = x.t() + 1
            return base, base[1:], base.t()

    x = torch.randn(4, 6)
    for mine, reference in zip(compiled(Transposed())(x), Transposed()(x), strict=True):
        torch.testing.assert_close(mine, reference)
        assert mine.stride() == reference.stride()


def test_complex_and_empty_tensors_run_in_eager(fake_core):
    class Unusual(nn.Module):
        def forward(self, x):
            spectrum = torch.fft.rfft(x)
            return spectrum.abs().sum() + x[:, :0].sum(), x * 2

    x = torch.randn(3, 8)
    torch.testing.assert_close(compiled(Unusual())(x), Unusual()(x))
    assert {op.reason for op in eager_ops()} >= {"complex numbers", "an empty tensor"}


def test_an_empty_operand_of_cat_is_dropped(fake_core):
    class Cache(nn.Module):
        def forward(self, empty, x):
            return torch.cat([empty, x], 1) * 2

    empty, x = torch.zeros(3, 0), torch.randn(3, 4)
    torch.testing.assert_close(compiled(Cache())(empty, x), x * 2)
    assert eager_ops() == []


def test_gather_checks_stay_in_the_text(fake_core):
    compiled(nn.Embedding(10, 4))(torch.tensor([[1, 2]]))
    assert "cf.assert" in fake_core[0].text


def test_no_foreign_dialect_remains(fake_core):
    class Scans(nn.Module):
        def forward(self, x, index):
            return x.cumsum(1), x.scatter_add(1, index, x[:, :2]), x.cummax(1)[0]

    x, index = torch.randn(3, 700), torch.randint(0, 700, (3, 2))
    torch.testing.assert_close(compiled(Scans())(x, index), Scans()(x, index), rtol=1e-4, atol=1e-4)
    assert eager_ops() == []
    assert all("tm_tensor" not in piece.text for piece in fake_core)


def test_tensor_constants_become_arguments():
    class Constant(nn.Module):
        def forward(self, x):
            return x + torch.tensor([[1.0, 2.0, 3.0]])

    from nearbank.capture import capture

    normal = fixups.normalize(capture(Constant(), (torch.randn(2, 3),)).graph_module)
    assert all(node.op != "get_attr" for node in normal.graph_module.graph.nodes)


def test_strided_views_are_read_by_index(fake_core):
    class Strided(nn.Module):
        def forward(self, x):
            return (x * 2).as_strided((3, 2), (4, 2), 1)

    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(Strided())(x), Strided()(x))
    assert eager_ops() == []
    assert "dense_resource" not in fake_core[0].text


def test_mutated_buffers_are_outputs_under_plan():
    from nearbank.capture import capture

    captured = capture(Convolution().train(), (torch.randn(2, 3, 8, 8), torch.tensor([1, 4])), training=True)
    assert captured.output_names[:3] == [
        "new value of norm.running_mean",
        "new value of norm.running_var",
        "new value of norm.num_batches_tracked",
    ]
    assert captured.output_names[3:5] == ["output0", "grad of convolution.weight"]
