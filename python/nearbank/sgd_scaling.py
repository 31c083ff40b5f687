# SPDX-License-Identifier: Apache-2.0
"""Brings features into the range of the fixed-point arithmetic, and models back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nearbank.sgd_data import DataSet


@dataclass(frozen=True)
class Scaling:
    """Maps features into the job's range: x becomes (x - shift) * factor."""

    kind: str
    shift: np.ndarray | None = None
    factor: np.ndarray | None = None

    def model_to_scaled(self, model: np.ndarray) -> np.ndarray:
        """Turn coefficients and intercept for raw features into those for scaled ones."""
        if self.factor is None:
            return model
        factor = np.where(self.factor == 0, 1.0, self.factor)
        coefficients = np.where(self.factor == 0, 0.0, model[:-1] / factor)
        shift = 0.0 if self.shift is None else float(model[:-1] @ self.shift)
        return np.append(coefficients, model[-1] + shift)

    def model_to_raw(self, model: np.ndarray) -> np.ndarray:
        """Turn coefficients and intercept for scaled features into those for raw ones."""
        if self.factor is None:
            return model
        coefficients = model[:-1] * self.factor
        shift = 0.0 if self.shift is None else float(coefficients @ self.shift)
        return np.append(coefficients, model[-1] - shift)

    def apply(self, data: DataSet) -> DataSet:
        """Scale a data set; values beyond the range seen in training are clipped to it."""
        if self.factor is None:
            return data
        low = 0.0 if self.kind == "unit" else -1.0
        if data.dense is not None:
            scaled = (data.dense - self.shift) * self.factor if self.shift is not None else data.dense * self.factor
            return replace(data, dense=np.ascontiguousarray(np.clip(scaled, low, 1.0)))
        if data.values is None:
            return data
        return replace(data, values=np.clip(data.values * self.factor[data.indices], low, 1.0))


def make_scaling(data: DataSet, kind: str | None, compat: bool = False) -> Scaling:
    """Choose how features come into the range of the arithmetic.

    Parameters
    ----------
    data : DataSet
        Training data.
    kind : {"standard", "minmax", None}
        Dense features: ``"standard"`` maps four standard deviations on either side of the mean to [-1, 1] and
        clips what lies beyond; ``"minmax"`` maps the range to [-1, 1]. PIM-Opt's arithmetic always gets the range in
        [0, 1]. Sparse values are divided by the feature's largest magnitude. None leaves features as they are.
    compat : bool, default False
        PIM-Opt's arithmetic.

    Returns
    -------
    Scaling
        To be applied to this and to later data.
    """
    if kind is None or data.generator or (data.is_sparse and data.values is None):
        return Scaling("none")
    if data.dense is not None:
        low, high = data.dense.min(axis=0), data.dense.max(axis=0)
        if kind == "standard" and not compat:
            deviation = data.dense.std(axis=0)
            is_constant = deviation <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
            factor = np.where(is_constant, 0.0, 0.25 / np.where(is_constant, 1.0, deviation))
            return Scaling("standard", data.dense.mean(axis=0), factor)
        if compat:  # PIM-Opt's accumulators start at zero.
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        with np.errstate(over="ignore"):
            span = high - low
        width = span if compat else 0.5 * high - 0.5 * low
        factor = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
        shift = low if compat else 0.5 * high + 0.5 * low
        return Scaling("unit" if compat else "minmax", shift, factor)
    largest = np.zeros(data.num_features)
    np.maximum.at(largest, data.indices, np.abs(data.values))
    factor = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0)
    return Scaling("maxabs", None, factor)
