# SPDX-License-Identifier: Apache-2.0
"""Decompositions of normalisation and variance that stay in the type of their input.

The importer widens `aten.var` of f32 to f64, which doubles the traffic of every layer norm; eager PyTorch does not.
"""

from __future__ import annotations

import math

import torch


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Half precision is computed in f32, as eager does; other types stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _moments(x: torch.Tensor, dims: list[int], correction: float):
    """Mean, deviation from it and variance over `dims`, kept as dimensions of size one."""
    count = math.prod(x.shape[dim] for dim in dims)
    mean = x.sum(dims, keepdim=True) / count
    deviation = x - mean
    variance = (deviation * deviation).sum(dims, keepdim=True) / max(count - correction, 0)
    return mean, deviation, variance


def native_layer_norm(x, normalized_shape, weight, bias, eps):
    """Layer normalisation in two passes over the input; see `torch.nn.functional.layer_norm`."""
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean, deviation, variance = _moments(_wide(x), dims, 0)
    scale = torch.rsqrt(variance + eps)
    result = deviation * scale
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(x.dtype), mean.to(x.dtype), scale.to(x.dtype)


def var_mean(x, dim=None, *, correction=None, keepdim=False):
    """Variance and mean; see `torch.var_mean`."""
    if not x.is_floating_point() or x.dim() == 0:
        return NotImplemented
    dims = [d % x.dim() for d in dim] if dim else list(range(x.dim()))
    mean, _, variance = _moments(_wide(x), dims, 1 if correction is None else correction)
    if not keepdim:
        mean, variance = mean.squeeze(dims), variance.squeeze(dims)
    return variance.to(x.dtype), mean.to(x.dtype)


def var(x, dim=None, *, correction=None, keepdim=False):
    """Variance; see `torch.var`."""
    both = var_mean(x, dim, correction=correction, keepdim=keepdim)
    return both if both is NotImplemented else both[0]
