# SPDX-License-Identifier: Apache-2.0
"""Options of a training job, and what they become in the arithmetic of the DPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearbank.errors import make_error, unknown_name

CHOICES = {
    "algorithm": ("ga-sgd", "ma-sgd", "admm"),
    "model": ("lr", "svm"),
    "arithmetic": ("q31", "f32"),
    "compat": ("default", "pim-opt"),
    "sync": ("server", "ring", "gossip", "in-network", "shared-chip", "shared-rank"),
    "engine": ("twin", "exact", "fast"),
    "times": ("auto", "sampled", "modelled"),
}
#: Stands for a factor of zero among the shifts.
NO_TERM = 63


@dataclass(frozen=True)
class JobOptions:
    """What a training job is asked to do; docs/guide/sgd.md describes each."""

    algorithm: str = "ma-sgd"
    model: str = "lr"
    arithmetic: str = "q31"
    compat: str = "default"
    sync: str = "server"
    machine: str = "upmem-2048"
    n_dpus: int = 64
    n_tasklets: int = 16
    batch_size: int = 8
    max_iter: int = 10
    eta0: float | str = "auto"
    alpha: float = 1e-4
    rho: float = 2.0**-10
    average_every: int = 1
    staleness: int = 0
    max_weight: float = 64.0
    class_weight: Mapping | str | None = None
    threads: int = 0
    engine: str = "twin"
    times: str = "modelled"

    def check(self) -> None:
        """Refuse unknown words and impossible numbers.

        Raises
        ------
        UserError
            NB0208 for an unknown word, NB0701 for an impossible number.
        """
        for name, valid in CHOICES.items():
            value = getattr(self, name)
            if value not in valid:
                raise unknown_name("user", "NB0208", "value is not valid for this option", value, valid, where=name)
        for name, lowest in (("n_dpus", 1), ("n_tasklets", 1), ("batch_size", 1), ("max_iter", 1), ("staleness", 0)):
            value = getattr(self, name)
            if value < lowest:
                raise _impossible(name, f"{lowest} or more", value)
        if self.n_tasklets > 24:
            raise _impossible("n_tasklets", "at most 24, which a DPU has", self.n_tasklets)
        if self.average_every < 0:
            raise _impossible("average_every", "0 (once an epoch) or more batches", self.average_every)
        for name in ("alpha", "rho", "max_weight"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0) or (name != "alpha" and value == 0):
                raise _impossible(name, "a positive number" if name != "alpha" else "zero or more", value)
        if self.eta0 != "auto" and not (isinstance(self.eta0, int | float) and 0 < self.eta0 < math.inf):
            raise _impossible("eta0", '"auto" or a positive number', self.eta0)


def _impossible(name: str, expected: str, actual: Any):
    return make_error(
        "user",
        "NB0701",
        "the training job does not fit together",
        where=name,
        expected=expected,
        actual=repr(actual),
        fix=f"change {name}",
    )


def shift_of(factor: float) -> int:
    """Give the shift that stands for a factor: the nearest power of two.

    Parameters
    ----------
    factor : float
        Zero or more.

    Returns
    -------
    int
        ``-log2(factor)``, rounded; 63 for zero.

    Examples
    --------
    >>> shift_of(0.25), shift_of(1e-4), shift_of(0.0)
    (2, 13, 63)
    """
    return NO_TERM if factor == 0 else round(-math.log2(factor))


def class_weights(options: JobOptions, labels: np.ndarray, classes: tuple) -> tuple[float, float]:
    """Give the weights of class 0 and class 1.

    Parameters
    ----------
    options : JobOptions
        `class_weight` is None, ``"balanced"`` or a mapping from class to weight.
    labels : ndarray of uint8
        Labels 0 and 1.
    classes : tuple
        The two classes.

    Returns
    -------
    (float, float)
        One each by default; balanced: rows / (2 x rows of the class).
    """
    if options.class_weight is None:
        return 1.0, 1.0
    if options.class_weight == "balanced":
        positives = int(labels.sum())
        counts = (len(labels) - positives, positives)
        return tuple(len(labels) / (2 * max(1, count)) for count in counts)
    return tuple(float(options.class_weight.get(label, 1.0)) for label in classes)


def settings_of(
    options: JobOptions, rate: float, weights: tuple[float, float] = (1.0, 1.0), machine: Any = None
) -> dict[str, Any]:
    """Translate options into the settings of `nearbank._sgd`.

    Parameters
    ----------
    options : JobOptions
        The options.
    rate : float
        Learning rate; rounded to a power of two in fixed point.
    weights : (float, float), default (1, 1)
        Weights of the classes.
    machine : nearbank._sgd.DpuMachine, optional
        Tells how many DPUs share a chip or a rank.

    Returns
    -------
    dict
        Settings.
    """
    is_pim_opt = options.compat == "pim-opt"
    is_admm = options.algorithm == "admm"
    penalty = options.rho if is_admm else options.alpha
    largest = max(weights)
    class_shift = 0 if is_pim_opt else max(0, math.ceil(math.log2(largest))) if largest > 0 else 0
    scaled = [max(1, round(weight / 2**class_shift * 256)) if weight > 0 else 0 for weight in weights]
    exponent = 0 if is_pim_opt else max(0, math.ceil(math.log2(options.max_weight)))
    shared = 0
    if machine is not None and options.sync.startswith("shared"):
        shared = int(machine.dpus_per_chip if options.sync == "shared-chip" else machine.dpus_per_rank)
    return {
        "algorithm": options.algorithm,
        "loss": "hinge" if options.model == "svm" else "logistic",
        "arithmetic": options.arithmetic,
        "sync": options.sync.partition("-")[0] if shared else options.sync,
        "sharedDpus": shared or 1,
        "pimOpt": is_pim_opt,
        "dpus": options.n_dpus,
        "tasklets": options.n_tasklets,
        "batch": options.batch_size,
        "averageEvery": options.average_every,
        "staleness": options.staleness,
        "threads": options.threads,
        "rateShift": shift_of(rate),
        "l2Shift": shift_of(penalty),
        "alphaShift": shift_of(options.alpha),
        "weightExponent": exponent,
        "classWeights": scaled,
        "classShift": class_shift,
        "rate": rate,
        "l2": penalty,
        "alpha": options.alpha,
        "floatClassWeights": list(weights),
    }


def rate_candidates(options: JobOptions) -> list[float]:
    """Give the learning rates that ``eta0="auto"`` tries, largest first.

    Parameters
    ----------
    options : JobOptions
        The options.

    Returns
    -------
    list of float
        Powers of two.
    """
    largest = 0 if options.compat == "pim-opt" else 6
    return [2.0**-exponent for exponent in range(-largest, 13)]
