# SPDX-License-Identifier: Apache-2.0
"""Scatter-like operators as selections: every output element looks for the source that hits it.

Parallel loop nests have no scatter; these forms have none, and stay exact. Where the search would cost too much the
functions return NotImplemented and the operator runs in eager PyTorch.
"""

from __future__ import annotations

import math

import torch

aten = torch.ops.aten

#: Comparisons up to which a selection replaces a scatter.
COMPARISON_LIMIT = 1 << 24


def _places(x, dim):
    """Index of each element along `dim`, shaped to broadcast against `x`."""
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    return torch.arange(x.shape[dim], device=x.device).view(shape)


def _is_selectable(x, dim, index):
    return x.dim() > 0 and all(i == dim or index.shape[i] == x.shape[i] for i in range(x.dim()))


def _nonnegative(index, size):
    return torch.where(index < 0, index + size, index)


def _hits(x, dim, index):
    """Shape of `x` with a last axis over the sources: does source k land on this element?"""
    sources = index.movedim(dim, -1).unsqueeze(dim)
    return _places(x, dim).unsqueeze(-1) == sources


def _select_scatter(x, dim, index, source):
    """Write source k to place index[k]; the last one wins."""
    dim = dim % max(x.dim(), 1)
    if not _is_selectable(x, dim, index) or x.numel() * index.shape[dim] > COMPARISON_LIMIT:
        return NotImplemented
    if isinstance(source, torch.Tensor):
        if source.dim() and source.shape != index.shape:
            source = source[tuple(slice(0, n) for n in index.shape)]
        source = source.to(x.dtype)
    else:
        source = torch.full((), source, dtype=x.dtype, device=x.device)
    if index.shape[dim] == 1 or source.dim() == 0:
        hit = index == _places(x, dim) if index.shape[dim] == 1 else _hits(x, dim, index).any(-1)
        return torch.where(hit, source, x)
    hits = _hits(x, dim, index)
    numbers = torch.arange(index.shape[dim], device=x.device)
    last = torch.where(hits, numbers, torch.full((), -1, dtype=torch.int64)).amax(-1)
    return torch.where(last >= 0, torch.gather(source, dim, last.clamp(min=0)), x)


def scatter_src(x, dim, index, src):
    """aten.scatter.src."""
    return _select_scatter(x, dim, index, src)


def scatter_value(x, dim, index, value):
    """aten.scatter.value."""
    return _select_scatter(x, dim, index, value)


def scatter_add(x, dim, index, src):
    """aten.scatter_add: each element sums the sources that hit it."""
    dim = dim % max(x.dim(), 1)
    if not _is_selectable(x, dim, index) or x.numel() * index.shape[dim] > COMPARISON_LIMIT:
        return NotImplemented
    if src.shape != index.shape:
        src = src[tuple(slice(0, n) for n in index.shape)]
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    if index.shape[dim] == 1:
        return x + torch.where(index == _places(x, dim), src, zero)
    sources = src.movedim(dim, -1).unsqueeze(dim)
    return x + torch.where(_hits(x, dim, index), sources, zero).sum(-1, dtype=x.dtype)


def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    """aten.scatter_reduce: sum, prod, mean, amax or amin over the sources that hit an element."""
    dim = dim % max(x.dim(), 1)
    if not _is_selectable(x, dim, index) or x.numel() * index.shape[dim] > COMPARISON_LIMIT or x.dtype == torch.bool:
        return NotImplemented
    if src.shape != index.shape:
        src = src[tuple(slice(0, n) for n in index.shape)]
    hits = _hits(x, dim, index)
    limits = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    lowest, highest = (-math.inf, math.inf) if x.is_floating_point() else (limits.min, limits.max)
    neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": lowest, "amin": highest}[reduce]
    start = torch.full((), neutral, dtype=x.dtype, device=x.device)
    found = torch.where(hits, src.movedim(dim, -1).unsqueeze(dim), start)
    own = x if include_self else torch.where(hits.any(-1), start, x)
    if reduce == "amax":
        return torch.maximum(own, found.amax(-1))
    if reduce == "amin":
        return torch.minimum(own, found.amin(-1))
    if reduce == "prod":
        return own * found.prod(-1, dtype=x.dtype)
    total = own + found.sum(-1, dtype=x.dtype)
    if reduce == "sum":
        return total
    count = hits.sum(-1) + (1 if include_self else 0)
    count = count.clamp(min=1)
    return total / count.to(x.dtype) if x.is_floating_point() else torch.div(total, count, rounding_mode="floor")


def _add_rows(size, index, rows):
    """Sum `rows` (n, width) into `size` places by a product with the 0/1 matrix of hits."""
    hits = torch.arange(size, device=rows.device)[:, None] == index[None, :]
    if rows.is_floating_point():
        return torch.mm(hits.to(rows.dtype), rows)
    zero = torch.zeros((), dtype=rows.dtype, device=rows.device)
    return torch.where(hits.unsqueeze(-1), rows.unsqueeze(0), zero).sum(1, dtype=rows.dtype)


def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """aten.embedding_dense_backward as a product with the 0/1 matrix of the indices."""
    if indices.numel() * num_weights > COMPARISON_LIMIT or indices.numel() == 0:
        return NotImplemented
    width = grad_output.shape[-1]
    index = indices.reshape(-1)
    rows = grad_output.reshape(-1, width)
    if scale_grad_by_freq:
        counts = (index[:, None] == index[None, :]).to(rows.dtype).sum(1)
        rows = rows / counts.unsqueeze(-1)
    if padding_idx >= 0:
        rows = torch.where((index == padding_idx).unsqueeze(-1), torch.zeros((), dtype=rows.dtype), rows)
    return _add_rows(num_weights, index, rows)


def index_put(x, indices, values, accumulate=False):
    """aten.index_put with integer index tensors on neighbouring leading or inner dimensions."""
    dims = [i for i, index in enumerate(indices) if index is not None]
    tensors = [indices[i] for i in dims]
    if not dims or dims != list(range(dims[0], dims[0] + len(dims))):
        return NotImplemented
    if any(t.dtype in (torch.bool, torch.uint8) for t in tensors):
        return _masked_put(x, indices, values, accumulate)
    first, sizes = dims[0], [x.shape[i] for i in dims]
    tensors = torch.broadcast_tensors(
        *[_nonnegative(t.to(torch.int64), n) for t, n in zip(tensors, sizes, strict=True)]
    )
    place = torch.zeros((), dtype=torch.int64, device=x.device)
    for tensor, size in zip(tensors, sizes, strict=True):
        place = place * size + tensor
    count = place.numel()
    total = 1
    for size in sizes:
        total *= size
    before, after = list(x.shape[:first]), list(x.shape[first + len(dims) :])
    width = 1
    for size in before + after:
        width *= size
    if count == 0 or total * count > COMPARISON_LIMIT or (accumulate and total * count * width > 1 << 32):
        return NotImplemented
    place = place.reshape(count)
    values = values.to(x.dtype).expand(before + list(tensors[0].shape) + after)
    # Flatten to (places, width) on both sides.
    rows = values.reshape(before + [count] + after).movedim(first, 0).reshape(count, width)
    base = x.reshape(before + [total] + after).movedim(first, 0)
    flat = base.reshape(total, width)
    if accumulate:
        if x.dtype == torch.bool:
            return NotImplemented
        new = flat + _add_rows(total, place, rows)
    elif count == 1:
        new = torch.where((torch.arange(total, device=x.device) == place).unsqueeze(-1), rows, flat)
    else:
        hits = torch.arange(total, device=x.device)[:, None] == place[None, :]
        numbers = torch.arange(count, device=x.device)
        last = torch.where(hits, numbers, torch.full((), -1, dtype=torch.int64)).amax(-1)
        new = torch.where((last >= 0).unsqueeze(-1), rows.index_select(0, last.clamp(min=0)), flat)
    return new.reshape(base.shape).movedim(0, first).reshape(x.shape)


def _masked_put(x, indices, values, accumulate):
    """A single boolean mask with one value for all hit elements is a selection."""
    if accumulate or len(indices) != 1 or values.numel() != 1 or indices[0].dtype != torch.bool:
        return NotImplemented
    mask = indices[0]
    mask = mask.reshape(list(mask.shape) + [1] * (x.dim() - mask.dim()))
    return torch.where(mask, values.to(x.dtype).reshape(()), x)


def max_pool2d_backward(grad_output, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """aten.max_pool2d_with_indices_backward: an input element asks the few windows over it whether they chose it."""
    pair = lambda value: list(value) * 2 if len(value) == 1 else list(value)  # noqa: E731
    kernel, padding, dilation = pair(kernel_size), pair(padding), pair(dilation)
    stride = pair(stride) if len(stride) else kernel
    height, width = x.shape[-2:]
    place = torch.arange(height * width, device=x.device).view(height, width)
    windows = []
    for axis, size in ((0, height), (1, width)):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        nearest = (torch.arange(size, device=x.device) + padding[axis]) // stride[axis]
        windows.append([nearest - back for back in range(-(-reach // stride[axis]))])
    if len(windows[0]) * len(windows[1]) > 25:
        return NotImplemented
    out_height, out_width = grad_output.shape[-2:]
    total = None
    zero = torch.zeros((), dtype=grad_output.dtype, device=x.device)
    for rows in windows[0]:
        for columns in windows[1]:
            inside = ((rows >= 0) & (rows < out_height))[:, None] & ((columns >= 0) & (columns < out_width))[None, :]
            row, column = rows.clamp(0, out_height - 1), columns.clamp(0, out_width - 1)
            chosen = indices.index_select(-2, row).index_select(-1, column)
            grad = grad_output.index_select(-2, row).index_select(-1, column)
            part = torch.where((chosen == place) & inside, grad, zero)
            total = part if total is None else total + part
    return total


DECOMPOSITIONS = {
    aten.scatter.src: scatter_src,
    aten.scatter.value: scatter_value,
    aten.scatter_add.default: scatter_add,
    aten.scatter_reduce.two: scatter_reduce,
    aten.embedding_dense_backward.default: embedding_dense_backward,
    aten.index_put.default: index_put,
    aten._index_put_impl.default: lambda x, indices, values, accumulate=False, unsafe=False: index_put(
        x, indices, values, accumulate
    ),
    aten._unsafe_index_put.default: index_put,
    aten.max_pool2d_with_indices_backward.default: max_pool2d_backward,
}
