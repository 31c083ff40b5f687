# SPDX-License-Identifier: Apache-2.0
"""Finds a learning rate on held-out rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nearbank.sgd_data import DataSet
from nearbank.sgd_options import JobOptions, rate_candidates, settings_of

#: The search looks at no more entries than this in each trial.
SEARCH_ENTRIES = 4_000_000
SEARCH_EPOCHS = 10


def _split(data: DataSet, seed: int) -> tuple[DataSet, DataSet]:
    """Take a training and a held-out part for the rate search, both classes in each where there are rows enough."""
    rows = data.num_rows
    limit = max(64, SEARCH_ENTRIES // max(1, data.max_row_entries()))
    count = min(rows, limit)
    if data.generator:
        held = max(1, count // 5)
        first = int(data.shape.get("firstRow", 0))
        return (
            replace(data, shape={**data.shape, "rows": count - held}),
            replace(data, shape={**data.shape, "rows": held, "firstRow": first + count - held}),
        )
    order = np.random.default_rng(seed).permutation(rows)[:count]
    if count < 10:
        return data.take(order), data.take(order)
    held = count // 5
    return data.take(order[held:]), data.take(order[:held])


def search_rate(
    data: DataSet, options: JobOptions, weights: tuple[float, float], seed: int, progress: Callable = lambda *_: None
) -> tuple[float, list[dict[str, float]]]:
    """Find the learning rate with the least loss on held-out rows.

    Parameters
    ----------
    data : DataSet
        Training data, scaled.
    options : JobOptions
        The job.
    weights : (float, float)
        Weights of the classes.
    seed : int
        Chooses the rows.
    progress : callable
        As ``progress(stage, done, total)``.

    Returns
    -------
    (float, list of dict)
        The rate, and each trial's ``rate`` and ``loss``. Ties go to the larger rate. The search runs on the twin: the
        same numbers everywhere.
    """
    train, held = _split(data, seed)
    dpus = max(1, min(options.n_dpus, round(options.n_dpus * train.num_rows / data.num_rows)))
    options = replace(options, n_dpus=dpus, sync="server", staleness=0)
    epochs = min(options.max_iter, SEARCH_EPOCHS)
    candidates = rate_candidates(options)
    trials = []
    from nearbank import _sgd

    rows = held_rows = None
    for number, rate in enumerate(candidates):
        progress("rate search", number, len(candidates))
        settings = settings_of(options, rate, weights)
        if options.arithmetic == "q31" and options.compat != "pim-opt":
            shift = settings["rateShift"] + settings["weightExponent"] - settings["classShift"]
            if shift < 0 or settings["rateShift"] + settings["l2Shift"] < 0:
                continue
        if rows is None:
            rows, held_rows = train.rows(settings), held.rows(settings)
        text = json.dumps(settings)
        trainer = _sgd.Trainer.make(text, rows, 0, 1)
        trainer.run_rounds(trainer.rounds_per_epoch * epochs)
        model = trainer.model()
        loss = (
            json.loads(_sgd.evaluate(text, held_rows, model, False))["loss"] if np.isfinite(model).all() else math.inf
        )
        trials.append({"rate": rate, "loss": loss if math.isfinite(loss) else math.inf})
    best = min(trials, key=lambda trial: (trial["loss"], -trial["rate"]))
    return best["rate"], trials
