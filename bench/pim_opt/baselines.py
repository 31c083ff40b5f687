# SPDX-License-Identifier: Apache-2.0
"""Times an epoch of linear models on this host and on rooflines, on the generators' rows, and checks their accuracy.

python bench/pim_opt/baselines.py [--rows N] [--epochs E]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import yaml
from nearbank import _sgd
from nearbank.machine_files import folder
from nearbank.sgd_data import DataSet, read_data
from nearbank.sgd_options import JobOptions
from nearbank.sgd_training import run_epochs, start_job

#: Rows of one step: PIM-Opt's GPU baseline.
BATCH = 4096


def arrays(spec: str) -> tuple[np.ndarray, np.ndarray]:
    """Take dense rows out of a generator.

    Parameters
    ----------
    spec : str
        For example ``"yfcc-like:20000"``.

    Returns
    -------
    (ndarray, ndarray)
        float32 features and labels.
    """
    data = read_data(spec)
    settings = json.dumps({"arithmetic": "f32"})
    taken = _sgd.take_rows(settings, data.rows({"arithmetic": "f32"}), 0, data.num_rows)
    return taken["values"].astype(np.float32).reshape(data.num_rows, -1), taken["labels"]


def native(X, y, Xt, yt, epochs: int, algorithm: str, threads: int) -> tuple[float, float]:
    """Time the twin in float32 with one DPU for each thread: the same algorithm, native C++ on all cores.

    Parameters
    ----------
    X, y, Xt, yt : ndarray
        Rows to train and to test on.
    epochs, algorithm, threads
        The job.

    Returns
    -------
    (float, float)
        Seconds an epoch, and accuracy.
    """
    data, test = (DataSet(labels, X.shape[1], dense=part.astype(np.float64)) for part, labels in ((X, y), (Xt, yt)))
    options = JobOptions(
        algorithm=algorithm, arithmetic="f32", n_dpus=threads, batch_size=8, eta0=2.0**-6, threads=threads
    )
    job = start_job(data, options)
    started = time.perf_counter()
    run_epochs(job, epochs)
    seconds = (time.perf_counter() - started) / epochs
    figures = json.loads(_sgd.evaluate(json.dumps(job.settings), test.rows(job.settings), job.trainer.model(), False))
    return seconds, figures["accuracy"]


def scikit_learn(X, y, Xt, yt, epochs: int) -> dict[str, tuple[float, float]]:
    """Time scikit-learn's classifiers; LogisticRegression counts iterations of L-BFGS as epochs."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    models = {
        "scikit-learn SGDClassifier": SGDClassifier(loss="log_loss", max_iter=epochs, tol=None, random_state=0),
        "scikit-learn LogisticRegression": LogisticRegression(max_iter=epochs),
    }
    result = {}
    for name, model in models.items():
        started = time.perf_counter()
        model.fit(X, y)
        result[name] = ((time.perf_counter() - started) / epochs, model.score(Xt, yt))
    return result


def pytorch(X, y, Xt, yt, epochs: int, device: str) -> tuple[float, float]:
    """Time mini-batch SGD in PyTorch with rows that lie on the device."""
    import torch

    X, y, Xt, yt = (torch.as_tensor(array, dtype=torch.float32).to(device) for array in (X, y, Xt, yt))
    model = torch.nn.Linear(X.shape[1], 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0**-4, weight_decay=2.0**-10)
    loss = torch.nn.BCEWithLogitsLoss()

    def epoch() -> None:
        for begin in range(0, len(y), BATCH):
            optimizer.zero_grad()
            loss(model(X[begin : begin + BATCH]).squeeze(1), y[begin : begin + BATCH]).backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    epoch()  # Warms up.
    started = time.perf_counter()
    for _ in range(epochs):
        epoch()
    seconds = (time.perf_counter() - started) / epochs
    return seconds, float(((model(Xt).squeeze(1) > 0) == (yt > 0.5)).float().mean())


def roofline(machine: str, rows: int, features: int, batch: int) -> float:
    """Bound an epoch from below: each row is read once from memory, each step is launched.

    Parameters
    ----------
    machine : str
        A built-in machine of kind roofline.
    rows, features, batch : int
        The job.

    Returns
    -------
    float
        Seconds; modelled.
    """
    values = yaml.safe_load((Path(folder()) / f"{machine}.yaml").read_text())["roofline"]
    steps = -(-rows // batch)
    read = rows * features * 4 / (values["bandwidthGBs"]["value"] * 1e9)
    compute = 4 * rows * features / (values["peakF32GFlops"]["value"] * 1e9)
    return max(read, compute) + steps * values["launchNs"]["value"] * 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    rows, epochs = arguments.rows, arguments.epochs
    X, y = arrays(f"yfcc-like:{rows}")
    Xt, yt = arrays(f"yfcc-like:5000,firstRow={1 << 32}")

    def show(name: str, seconds: float, accuracy: float | None, kind: str) -> None:
        shown = "" if accuracy is None else f"{100 * accuracy:.2f} %"
        print(f"{name:<42}{1e9 * seconds / rows / X.shape[1]:>10.3f} ns a feature{shown:>10}  {kind}", flush=True)

    print(
        f"yfcc-like, {rows} rows, {epochs} epochs, logistic regression; time of an epoch over its {X.shape[1]} features"
    )
    for algorithm in ("ga-sgd", "ma-sgd", "admm"):
        show(
            f"native C++, {algorithm}, float32",
            *native(X, y, Xt, yt, epochs, algorithm, os.cpu_count() or 1),
            "measured",
        )
    for name, (seconds, accuracy) in scikit_learn(X, y, Xt, yt, epochs).items():
        show(name, seconds, accuracy, "measured")
    import torch

    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        show(f"PyTorch {torch.__version__}, {device}", *pytorch(X, y, Xt, yt, epochs, device), "measured")
    for machine in ("epyc-7742x2", "a100-80g"):
        show(
            f"{machine}, rows in its memory",
            roofline(machine, rows, X.shape[1], BATCH),
            None,
            "modelled, a lower bound",
        )


if __name__ == "__main__":
    main()
