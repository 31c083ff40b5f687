# SPDX-License-Identifier: Apache-2.0
"""Times the twin: a9a against scikit-learn's SGDClassifier, and an epoch of Criteo-like rows over many DPUs.

python bench/train_speed.py a9a FOLDER          (FOLDER holds a9a)
python bench/train_speed.py criteo ALGORITHM [--dpus N]
"""

from __future__ import annotations

import argparse
import json
import resource
import time

from nearbank import _sgd
from nearbank.sgd_data import DataSet, read_data
from nearbank.sgd_options import JobOptions, settings_of

#: PIM-Opt's strong scaling: rows of all DPUs, here of 2,048.
CRITEO_ROWS, CRITEO_DPUS = 50_331_648, 2048


def timed(work) -> tuple[float, float]:
    """Call `work`; seconds of wall and of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def time_a9a(folder: str, repeats: int = 5) -> None:
    """Print the twin's processor time of 10 epochs on 2,048 DPUs over SGDClassifier's, in turns; least of each."""
    import numpy as np
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import SGDClassifier

    data: DataSet = read_data(f"{folder}/a9a", num_features=123)
    ones = np.ones(len(data.indices))
    X = csr_matrix((ones, data.indices.astype(np.int32), data.offsets.astype(np.int32)), (data.num_rows, 123))
    for model, loss in (("lr", "log_loss"), ("svm", "hinge")):
        for algorithm in ("ga-sgd", "ma-sgd", "admm"):
            options = JobOptions(algorithm=algorithm, model=model, n_dpus=2048)
            settings = settings_of(options, 4.0)
            rows = data.rows(settings)
            best = [float("inf")] * 2
            for _ in range(repeats):
                trainer = _sgd.Trainer.make(json.dumps(settings), rows)
                twin = timed(lambda trainer=trainer: trainer.run_rounds(10 * trainer.rounds_per_epoch))
                classifier = SGDClassifier(loss=loss, max_iter=10, tol=None)
                other = timed(lambda classifier=classifier: classifier.fit(X, data.labels))
                best = [min(best[0], twin[1]), min(best[1], other[1])]
            print(
                f"{algorithm:<8}{model:<5}twin {best[0]:.3f} s, SGDClassifier {best[1]:.3f} s of processor time: "
                f"{best[0] / best[1]:.2f}x (goal: at most 1.5)",
                flush=True,
            )


def time_criteo(algorithm: str, dpus: int) -> None:
    """Print time and memory of one strong-scaling epoch; fewer DPUs take their share of the rows."""
    options = JobOptions(
        algorithm=algorithm,
        compat="pim-opt",
        n_dpus=dpus,
        batch_size=max(1, 262144 // CRITEO_DPUS) if algorithm == "ga-sgd" else 2048,
    )
    settings = settings_of(options, 1.0)
    rows = read_data(f"criteo-like:{CRITEO_ROWS * dpus // CRITEO_DPUS}").rows(settings)
    trainer = _sgd.Trainer.make(json.dumps(settings), rows)
    wall, cpu = timed(lambda: trainer.run_rounds(trainer.rounds_per_epoch))
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{algorithm}: {dpus} DPUs, {rows.num_rows} rows, {trainer.rounds_per_epoch} rounds: {wall:.0f} s wall, "
        f"{cpu:.0f} s of processor time, {gigabytes:.1f} GB (goal with {CRITEO_DPUS} DPUs on 2 cores: 15 min, 8 GB; "
        "admm 20 GB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("a9a").add_argument("folder")
    criteo = verbs.add_parser("criteo")
    criteo.add_argument("algorithm", choices=["ga-sgd", "ma-sgd", "admm"])
    criteo.add_argument("--dpus", type=int, default=CRITEO_DPUS)
    arguments = parser.parse_args()
    if arguments.verb == "a9a":
        time_a9a(arguments.folder)
    else:
        time_criteo(arguments.algorithm, arguments.dpus)


if __name__ == "__main__":
    main()
