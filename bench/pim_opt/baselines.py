# SPDX-License-Identifier: Apache-2.0
"""Times an epoch of linear models on this host, on the generators' rows, and checks accuracy or AUC: native C++,
scikit-learn, PyTorch; the same rows, and as many epochs for all. Bounds the paper's machines by their rooflines.

python bench/pim_opt/baselines.py [--data yfcc|criteo] [--model lr|svm] [--rows N] [--epochs E]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nearbank import _sgd
from nearbank.sgd_data import DataSet, read_data
from nearbank.sgd_options import JobOptions
from nearbank.sgd_training import run_epochs, start_job
from rooflines import MACHINES, roofline
from study import SHAPES

#: Rows of one step of a process, as PIM-Opt's CPU baseline and DPUs have them, and of PIM-Opt's GPU baseline.
LOCAL_BATCH = {"yfcc": 8, "criteo": 2048}
GPU_BATCH = 4096
#: Learning rate of all, and regulariser; rows of Criteo are ones.
RATE = {"yfcc": 2.0**-6, "criteo": 1.0}
ALPHA = 1e-4


@dataclass
class Rows:
    """Training or test rows: a float32 matrix, or SciPy's CSR matrix of ones."""

    matrix: Any
    labels: np.ndarray

    def data(self) -> DataSet:
        """Give them as the native trainer takes them."""
        if isinstance(self.matrix, np.ndarray):
            return DataSet(self.labels, self.matrix.shape[1], dense=self.matrix.astype(np.float64))
        offsets, indices = self.matrix.indptr.astype(np.int64), self.matrix.indices.astype(np.uint32)
        return DataSet(self.labels, self.matrix.shape[1], offsets=offsets, indices=indices)


def generated(dataset: str, rows: int, first: int = 0) -> Rows:
    """Take rows out of a generator.

    Parameters
    ----------
    dataset : str
        ``"yfcc"`` or ``"criteo"``.
    rows, first : int
        How many, and from which on.

    Returns
    -------
    Rows
        The rows.
    """
    from scipy.sparse import csr_matrix

    data = read_data(f"{dataset}-like:{rows},firstRow={first}")
    taken = _sgd.take_rows(json.dumps({"arithmetic": "f32"}), data.rows({"arithmetic": "f32"}), 0, rows)
    if dataset == "yfcc":
        return Rows(taken["values"].astype(np.float32).reshape(rows, -1), taken["labels"])
    indices = taken["indices"].astype(np.int32)
    ones = np.ones(len(indices), np.float32)
    return Rows(csr_matrix((ones, indices, taken["offsets"]), (rows, data.num_features)), taken["labels"])


def scored(train: Rows, test: Rows, coefficients: np.ndarray, intercept: float) -> tuple[float, float]:
    """Give accuracy and area under the ROC curve of a model on the test rows."""
    from sklearn.metrics import roc_auc_score

    scores = test.matrix @ coefficients + intercept
    return float(((scores > 0) == test.labels).mean()), float(roc_auc_score(test.labels, scores))


def native(train: Rows, test: Rows, dataset: str, model: str, epochs: int, algorithm: str) -> tuple[float, ...]:
    """Time the twin in float32 with one DPU for each core: the same algorithm, native C++ on all cores.

    Returns
    -------
    tuple of float
        Seconds of an epoch, accuracy, area under the curve.
    """
    cores = os.cpu_count() or 1
    options = JobOptions(
        algorithm=algorithm,
        model=model,
        arithmetic="f32",
        n_dpus=cores,
        batch_size=LOCAL_BATCH[dataset],
        eta0=RATE[dataset],
        alpha=ALPHA,
        threads=cores,
    )
    job = start_job(train.data(), options)
    started = time.perf_counter()
    run_epochs(job, epochs)
    seconds = (time.perf_counter() - started) / epochs
    return seconds, *scored(train, test, job.model[:-1], job.model[-1])


def scikit_learn(train: Rows, test: Rows, model: str, epochs: int) -> dict[str, tuple[float, ...]]:
    """Time scikit-learn's classifiers; LogisticRegression counts iterations of L-BFGS as epochs."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    loss = "log_loss" if model == "lr" else "hinge"
    models: dict[str, Any] = {
        "scikit-learn SGDClassifier": SGDClassifier(loss=loss, alpha=ALPHA, max_iter=epochs, tol=None, random_state=0)
    }
    if model == "lr":
        models["scikit-learn LogisticRegression, an iteration"] = LogisticRegression(max_iter=epochs)
    result = {}
    for name, classifier in models.items():
        started = time.perf_counter()
        classifier.fit(train.matrix, train.labels)
        seconds = (time.perf_counter() - started) / epochs
        result[name] = (seconds, *scored(train, test, classifier.coef_[0], float(classifier.intercept_[0])))
    return result


def _torch_model(rows: Rows, device: str) -> tuple[Any, Callable[[int, int], Any]]:
    """Build a model, and what gives its scores of rows [begin, end)."""
    import torch

    if isinstance(rows.matrix, np.ndarray):
        X = torch.as_tensor(rows.matrix).to(device)
        dense = torch.nn.Linear(X.shape[1], 1).to(device)
        torch.nn.init.zeros_(dense.weight)
        return dense, lambda begin, end: dense(X[begin:end]).squeeze(1)
    indices = torch.as_tensor(rows.matrix.indices.reshape(len(rows.labels), -1)).to(device)
    bag = torch.nn.EmbeddingBag(rows.matrix.shape[1], 1, mode="sum", sparse=True).to(device)
    torch.nn.init.zeros_(bag.weight)
    return bag, lambda begin, end: bag(indices[begin:end]).squeeze(1)


def pytorch(train: Rows, test: Rows, dataset: str, model: str, epochs: int, batch: int, device: str):
    """Time mini-batch SGD in PyTorch with rows that lie on the device.

    Returns
    -------
    tuple of float
        Seconds of an epoch, accuracy, area under the curve.
    """
    import torch

    module, scores = _torch_model(train, device)
    y = torch.as_tensor(train.labels.astype(np.float32)).to(device)
    is_sparse = dataset == "criteo"
    # Gradients of sparse rows come as sparse tensors, which take no weight decay.
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE[dataset], weight_decay=0.0 if is_sparse else ALPHA)
    logistic = torch.nn.BCEWithLogitsLoss()

    def loss(z, labels):
        return logistic(z, labels) if model == "lr" else torch.clamp(1 - (2 * labels - 1) * z, min=0).mean()

    def epoch() -> None:
        for begin in range(0, len(y), batch):
            optimizer.zero_grad()
            loss(scores(begin, begin + batch), y[begin : begin + batch]).backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    started = time.perf_counter()
    for _ in range(epochs):
        epoch()
    seconds = (time.perf_counter() - started) / epochs
    weights = module.weight.detach().cpu().numpy().ravel()
    bias = 0.0 if is_sparse else float(module.bias.detach().cpu()[0])
    return seconds, *scored(train, test, weights, bias)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=["yfcc", "criteo"], default="yfcc")
    parser.add_argument("--model", choices=["lr", "svm"], default="lr")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    dataset, model, rows, epochs = arguments.data, arguments.model, arguments.rows, arguments.epochs
    train, test = generated(dataset, rows), generated(dataset, 5000 if dataset == "yfcc" else 50000, 1 << 32)
    entries = SHAPES[dataset]["entriesPerRow"]

    def show(name: str, seconds: float, *figures: float, kind: str = "measured") -> None:
        shown = f"{100 * figures[0]:>9.2f} %{figures[1]:>9.4f}" if figures else ""
        print(f"{name:<48}{1e9 * seconds / rows / entries:>10.3f} ns{shown:<20}  {kind}", flush=True)

    print(f"{dataset}-like, {model}, {rows} rows, {epochs} epochs; time of an epoch over its entries, accuracy, AUC")
    for algorithm in ("ga-sgd", "ma-sgd", "admm"):
        show(f"native C++, {algorithm}, float32", *native(train, test, dataset, model, epochs, algorithm))
    for name, figures in scikit_learn(train, test, model, epochs).items():
        show(name, *figures)
    import torch

    batches = sorted({LOCAL_BATCH[dataset] * (os.cpu_count() or 1), GPU_BATCH})
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        for batch in batches:
            figures = pytorch(train, test, dataset, model, epochs, batch, device)
            show(f"PyTorch {torch.__version__}, {device}, batch {batch}", *figures)
    for machine in MACHINES:
        seconds = roofline(machine, rows, entries, -(-rows // GPU_BATCH))
        show(f"{machine}, rows in its memory", seconds, kind="modelled, a lower bound")


if __name__ == "__main__":
    main()
