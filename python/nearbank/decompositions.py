# SPDX-License-Identifier: Apache-2.0
"""Decomposition table handed to AOTAutograd: PyTorch's own tables, and what the importer needs beyond them."""

from __future__ import annotations

import functools
import math

import torch

from nearbank import extrema, norms, scatters

aten = torch.ops.aten

#: Elements of a prefix's comparison matrix up to which one masked reduction replaces log-step doubling.
MASKED_SCAN_LIMIT = 1 << 16

# Named by overload packet; every overload that PyTorch's table has is taken.
_MORE_FROM_PYTORCH = (
    "batch_norm_backward",
    "_batch_norm_with_update",
    "_batch_norm_with_update_functional",
    "_batch_norm_no_update",
    "native_batch_norm",
    "native_batch_norm_backward",
    "native_group_norm_backward",
    "native_layer_norm_backward",
    "_fused_rms_norm",
    "_fused_rms_norm_backward",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "native_dropout_backward",
    "nll_loss_forward",
    "nll_loss_backward",
    "nll_loss2d_forward",
    "nll_loss2d_backward",
    "_log_softmax_backward_data",
    "_softmax_backward_data",
    "smooth_l1_loss",
    "smooth_l1_loss_backward",
    "huber_loss",
    "huber_loss_backward",
    "mse_loss",
    "mse_loss_backward",
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "soft_margin_loss",
    "soft_margin_loss_backward",
    "squeeze",
    "index_add",
    "index_copy",
    "index_fill",
    "masked_fill",
    "masked_scatter",
    "trace",
    "unfold_backward",
    "_unsafe_view",
    "_unsafe_index",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "upsample_nearest2d",
    "upsample_nearest1d",
    "upsample_nearest3d",
    "upsample_bilinear2d",
    "upsample_bicubic2d",
    "upsample_linear1d",
    "pixel_shuffle",
    "pixel_unshuffle",
    "linspace",
    "logspace",
    "logaddexp",
    "logaddexp2",
    "logit",
    "logit_backward",
    "xlogy",
    "sinc",
    "nan_to_num",
    "heaviside",
    "deg2rad",
    "rad2deg",
    "frac",
    "hardshrink",
    "softshrink",
    "take",
    "diag_embed",
    "diag",
    "kron",
    "renorm",
    "special_entr",
    "special_xlog1py",
    "_scaled_dot_product_flash_attention_for_cpu",
    "glu",
    "glu_backward",
    "elu_backward",
    "gelu_backward",
    "silu_backward",
    "mish_backward",
    "hardswish_backward",
    "hardsigmoid_backward",
    "hardtanh_backward",
    "leaky_relu_backward",
    "log_sigmoid_backward",
    "log_sigmoid_forward",
    "softplus_backward",
    "threshold_backward",
    "tanh_backward",
    "sigmoid_backward",
    "prelu",
    "rrelu_with_noise_backward",
    "col2im",
    "im2col",
    "_adaptive_avg_pool2d",
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "var",
    "std",
    "std_mean",
    "addcdiv",
    "addcmul",
    "addmv",
    "addr",
    "aminmax",
    "dist",
    "cdist",
    "mv",
    "block_diag",
    "rot90",
    "tril",
    "triu",
    "vander",
)


def math_attention():
    """Return a context in which scaled_dot_product_attention decomposes into matrix products and a softmax.

    Returns
    -------
    context manager
        Affects tracing and eager execution inside the `with` block only.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.MATH)


@functools.cache
def decomposition_table() -> dict:
    """Return the decompositions that make graphs importable.

    Returns
    -------
    dict
        Operator overload to Python function, as `torch._decomp.get_decompositions` returns it.
    """
    from torch._decomp import get_decompositions
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    table = dict(get_decomposition_table())
    packets = [getattr(aten, name) for name in _MORE_FROM_PYTORCH if hasattr(aten, name)]
    table.update(get_decompositions(packets))
    # Importable as they are; PyTorch's decompositions of them multiply by one or detour over more loops.
    for packet in _IMPORTABLE:
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    table.update(_own_decompositions())
    return table


_IMPORTABLE = (aten.addmm, aten.gelu_backward, aten.detach)


def _own_decompositions() -> dict:
    own = {
        aten.addmm.default: addmm,
        aten.roll.default: roll,
        aten.argmax.default: functools.partial(_first_extremum, pick=aten.argmax),
        aten.argmin.default: functools.partial(_first_extremum, pick=aten.argmin),
        aten.native_layer_norm.default: norms.native_layer_norm,
        aten.var_mean.correction: norms.var_mean,
        aten.var.correction: norms.var,
        aten.cumsum.default: cumsum,
        aten.cumprod.default: cumprod,
        aten.logcumsumexp.default: logcumsumexp,
        aten.cummax.default: functools.partial(_cumulative_extremum, is_later_kept=torch.ge),
        aten.cummin.default: functools.partial(_cumulative_extremum, is_later_kept=torch.le),
        aten._scaled_dot_product_flash_attention_for_cpu.default: flash_attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: flash_attention_backward,
    }
    own.update(extrema.DECOMPOSITIONS)
    own.update(scatters.DECOMPOSITIONS)
    return own


def addmm(bias, a, b, beta=1, alpha=1):
    """Matrix product plus bias, without the factors that are one."""
    product = torch.mm(a, b)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


def _shift(x, dim, by, fill):
    """Move `x` up by `by` places along `dim`; `fill` enters at the start."""
    kept = x.narrow(dim, 0, x.shape[dim] - by)
    padding = [0, 0] * (x.dim() - 1 - dim) + [by, 0]
    return aten.constant_pad_nd(kept, padding, fill)


def _prefix(x, dim, combine, neutral):
    """Inclusive prefix by log-step doubling: ceil(log2(n)) elementwise steps, each over all elements."""
    step = 1
    while step < x.shape[dim]:
        x = combine(_shift(x, dim, step, neutral), x)
        step *= 2
    return x


def _scan_input(x, dim, dtype):
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() or x.is_complex() else torch.int64
    return x.to(dtype), dim % max(x.dim(), 1)


def cumsum(x, dim, *, dtype=None):
    """Prefix sums; exact for integers, at least as accurate as the sequential sum for floats."""
    x, dim = _scan_input(x, dim, dtype)
    if x.dim() == 0:
        return x.clone()
    size = x.shape[dim]
    if x.numel() * size <= MASKED_SCAN_LIMIT:
        places = torch.arange(size, device=x.device)
        earlier = places[None, :] <= places[:, None]
        rows = x.movedim(dim, -1).unsqueeze(-2)
        return torch.where(earlier, rows, torch.zeros((), dtype=x.dtype)).sum(-1, dtype=x.dtype).movedim(-1, dim)
    return _prefix(x, dim, torch.add, 0)


def cumprod(x, dim, *, dtype=None):
    """Prefix products by log-step doubling."""
    x, dim = _scan_input(x, dim, dtype)
    return x.clone() if x.dim() == 0 else _prefix(x, dim, torch.mul, 1)


def logcumsumexp(x, dim):
    """Logarithm of the prefix sums of exponentials by log-step doubling."""
    dim = dim % max(x.dim(), 1)
    return x.clone() if x.dim() == 0 else _prefix(x, dim, torch.logaddexp, -math.inf)


def _cumulative_extremum(x, dim, *, is_later_kept):
    """Prefix maximum or minimum and the index of its last occurrence; NaN wins, as in eager."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    dim = dim % x.dim()
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    indices = torch.arange(x.shape[dim], device=x.device).view(shape).expand(x.shape)
    step = 1
    while step < x.shape[dim]:
        # The pad value never wins: places before `step` keep what they have.
        earlier, earlier_indices = _shift(x, dim, step, 0), _shift(indices, dim, step, -1)
        keep = is_later_kept(x, earlier) | (earlier_indices < 0)
        if x.is_floating_point():
            keep = torch.where(torch.isnan(earlier) & (earlier_indices >= 0), torch.isnan(x), keep | torch.isnan(x))
        x = torch.where(keep, x, earlier)
        indices = torch.where(keep, indices, earlier_indices)
        step *= 2
    return x, indices


def roll(x, shifts, dims=()):
    """Cyclic shift as a concatenation of two slices per dimension."""
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        by = shift % size if size else 0
        if by:
            x = torch.cat([x.narrow(dim, size - by, by), x.narrow(dim, 0, size - by)], dim)
    return x.clone()


def _first_extremum(x, dim=None, keepdim=False, *, pick):
    """argmax or argmin over all elements, or of a single one; over a dimension it lowers as it is."""
    if x.dim() == 0:
        return torch.zeros((), dtype=torch.int64, device=x.device)
    if dim is not None:
        return NotImplemented
    index = pick(x.reshape(-1), 0)
    return index.reshape([1] * x.dim()) if keepdim else index


def _scores(query, key, is_causal, attn_mask, scale):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    if is_causal:
        rows = torch.arange(query.shape[-2], device=query.device)[:, None]
        columns = torch.arange(key.shape[-2], device=query.device)[None, :]
        scores = torch.where(columns <= rows, scores, torch.full((), -math.inf, dtype=scores.dtype))
    if attn_mask is not None:
        scores = scores + attn_mask
    return scores


def flash_attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    """CPU flash attention in its mathematical form, and the row-wise log of the sum of exponentials."""
    if dropout_p:
        return NotImplemented
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    mask = None if attn_mask is None else attn_mask.to(wide)
    scores = _scores(query.to(wide), key.to(wide), is_causal, mask, scale)
    logsumexp = torch.logsumexp(scores, -1)
    output = torch.matmul(torch.softmax(scores, -1), value.to(wide))
    # The operator keeps the query's order of dimensions in memory, and later views rely on it.
    order = sorted(range(4), key=lambda dim: -query.stride(dim))
    inverse = [order.index(dim) for dim in range(4)]
    output = output.to(query.dtype).permute(order).contiguous().permute(inverse)
    return output, logsumexp


def flash_attention_backward(
    grad, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):
    """Gradients of `flash_attention` with respect to query, key and value."""
    if dropout_p:
        return NotImplemented
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    wide = logsumexp.dtype
    grad_w, query_w, key_w, value_w, out_w = (t.to(wide) for t in (grad, query, key, value, out))
    mask = None if attn_mask is None else attn_mask.to(wide)
    probabilities = torch.exp(_scores(query_w, key_w, is_causal, mask, scale) - logsumexp.unsqueeze(-1))
    grad_value = torch.matmul(probabilities.transpose(-2, -1), grad_w)
    grad_probabilities = torch.matmul(grad_w, value_w.transpose(-2, -1))
    grad_scores = probabilities * (grad_probabilities - (grad_w * out_w).sum(-1, keepdim=True)) * factor
    grad_query = torch.matmul(grad_scores, key_w)
    grad_key = torch.matmul(grad_scores.transpose(-2, -1), query_w)
    return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype)
