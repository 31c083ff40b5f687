# SPDX-License-Identifier: Apache-2.0
"""Trains every algorithm, model and arithmetic on LIBSVM's a9a and prints test accuracies beside scikit-learn's.

python bench/train_a9a.py FOLDER   (FOLDER holds a9a and a9a.t)
"""

from __future__ import annotations

import sys
from pathlib import Path

from nearbank.sgd_data import read_data
from nearbank.sgd_options import JobOptions
from nearbank.sgd_training import run_epochs, start_job


def accuracy(data, test, **options) -> tuple[float, float]:
    """Train with the learning rate of the search; gives rate and test accuracy."""
    job = start_job(data, JobOptions(**{"n_dpus": 64, "max_iter": 10, **options}), shuffle=True)
    run_epochs(job, 10, test_rows=test.rows(job.settings), with_auc=False)
    return job.rate, job.history[-1]["testAccuracy"]


def sklearn_accuracies(data, test) -> dict[str, float]:
    """Train scikit-learn's classifiers on the same rows."""
    import numpy as np
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    def matrix(rows):
        ones = np.ones(len(rows.indices))
        return csr_matrix((ones, rows.indices.astype(np.int32), rows.offsets.astype(np.int32)), (rows.num_rows, 123))

    X, Xt = matrix(data), matrix(test)
    models = {
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "SGDClassifier log loss": SGDClassifier(loss="log_loss", max_iter=10, tol=None, random_state=0),
        "SGDClassifier hinge": SGDClassifier(max_iter=10, tol=None, random_state=0),
    }
    return {name: model.fit(X, data.labels).score(Xt, test.labels) for name, model in models.items()}


def main() -> None:
    folder = Path(sys.argv[1])
    data = read_data(str(folder / "a9a"), num_features=123)
    test = read_data(str(folder / "a9a.t"), num_features=123, classes=data.classes)
    print(f"{'algorithm':<10}{'model':<7}{'arithmetic':<12}{'sync':<12}{'rate':>8}{'test accuracy':>15}")
    jobs = [
        (algorithm, model, arithmetic, "server")
        for algorithm in ("ga-sgd", "ma-sgd", "admm")
        for model in ("lr", "svm")
        for arithmetic in ("q31", "f32")
    ]
    jobs += [("ma-sgd", model, arithmetic, "gossip") for model in ("lr", "svm") for arithmetic in ("q31", "f32")]
    for algorithm, model, arithmetic, sync in jobs:
        rate, share = accuracy(
            data, test, algorithm=algorithm, model=model, arithmetic=arithmetic, sync=sync, machine="upmem-64-link"
        )
        print(f"{algorithm:<10}{model:<7}{arithmetic:<12}{sync:<12}{rate:>8g}{100 * share:>13.2f} %", flush=True)
    for name, share in sklearn_accuracies(data, test).items():
        print(f"scikit-learn {name:<36}{100 * share:>13.2f} %")


if __name__ == "__main__":
    main()
