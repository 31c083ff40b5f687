# SPDX-License-Identifier: Apache-2.0
"""PIM-Opt's study on generated rows: PIM-Opt's arithmetic, rates and samples per DPU. Cells are kept and not run twice.

python bench/pim_opt/study.py --out FOLDER [--all] [--only TEXT] [--report]
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

from nearbank.sgd_data import read_data
from nearbank.sgd_options import JobOptions
from nearbank.sgd_training import run_epochs, start_job

#: Published exponents (rate, L2 or rho, alpha) and batches: facts of CMU-SAFARI/PIM-Opt, host/app.c of each program.
PUBLISHED = {
    ("yfcc", "ma-sgd", "lr"): (6, 12, 63, 8),
    ("yfcc", "ma-sgd", "svm"): (6, 10, 63, 8),
    ("yfcc", "ga-sgd", "lr"): (4, 10, 63, 4096),
    ("yfcc", "ga-sgd", "svm"): (6, 8, 63, 4096),
    ("yfcc", "admm", "lr"): (6, 12, 4, 8),
    ("yfcc", "admm", "svm"): (6, 10, 12, 8),
    ("criteo", "ma-sgd", "lr"): (0, 12, 63, 2048),
    ("criteo", "ma-sgd", "svm"): (2, 12, 63, 2048),
    ("criteo", "ga-sgd", "lr"): (0, 12, 63, 262144),
    ("criteo", "ga-sgd", "svm"): (2, 12, 63, 262144),
    ("criteo", "admm", "lr"): (0, 12, 6, 2048),
    ("criteo", "admm", "svm"): (1, 12, 8, 2048),
}
#: Training rows on 256 DPUs; weak scaling keeps the rows of each DPU, strong scaling the sum.
ROWS = {"yfcc": 851_968, "criteo": 50_331_648}
TEST_ROWS = {"yfcc": 21_299, "criteo": 200_000}


@dataclass(frozen=True)
class Cell:
    """One training run of the study."""

    dataset: str
    algorithm: str
    model: str
    dpus: int
    scaling: str
    epochs: int

    @property
    def name(self) -> str:
        """File name of the cell."""
        parts = (self.dataset, self.algorithm, self.model, self.dpus, self.scaling, self.epochs)
        return "-".join(str(part) for part in parts)

    @property
    def rows(self) -> int:
        """Training rows."""
        return ROWS[self.dataset] * (self.dpus // 256 if self.scaling == "weak" else 1)


def cells(everything: bool) -> list[Cell]:
    """List the cells, quick ones first.

    Parameters
    ----------
    everything : bool
        All sizes; otherwise what two cores do in two hours.

    Returns
    -------
    list of Cell
        The cells.
    """
    found = []
    for dataset, algorithm, model in PUBLISHED:
        epochs = 3 if dataset == "yfcc" else 1
        for scaling in ("strong", "weak"):
            for dpus in (256, 512, 1024, 2048):
                if scaling == "weak" and dpus == 256:
                    continue  # The same as strong.
                large = dpus == 2048 or dataset == "criteo"
                if not everything and (scaling == "weak" and large or dataset == "criteo" and dpus not in (256, 2048)):
                    continue
                found.append(Cell(dataset, algorithm, model, dpus, scaling, epochs))
    return sorted(found, key=lambda cell: cell.rows * (48 if cell.dataset == "criteo" else 4096) * cell.epochs)


def run_cell(cell: Cell) -> dict:
    """Train one cell.

    Parameters
    ----------
    cell : Cell
        What to train.

    Returns
    -------
    dict
        Figures: accuracy and AUC (simulated arithmetic), seconds by kind (modelled), wall time of the twin (measured).
    """
    rate, penalty, alpha, batch = PUBLISHED[cell.dataset, cell.algorithm, cell.model]
    if cell.algorithm == "ga-sgd":
        batch = max(1, batch // cell.dpus)
    is_admm = cell.algorithm == "admm"
    options = JobOptions(
        algorithm=cell.algorithm,
        model=cell.model,
        compat="pim-opt",
        n_dpus=cell.dpus,
        batch_size=batch,
        max_iter=cell.epochs,
        eta0=2.0**-rate,
        rho=2.0**-penalty,
        alpha=2.0**-alpha if is_admm else 2.0**-penalty,
    )
    data = read_data(f"{cell.dataset}-like:{cell.rows}")
    test = read_data(f"{cell.dataset}-like:{TEST_ROWS[cell.dataset]},firstRow={1 << 32}")
    started = time.perf_counter()
    job = start_job(data, options)
    run_epochs(job, cell.epochs, test_rows=test.rows(job.settings))
    seconds = {name: sum(entry["seconds"][name] for entry in job.history) for name in job.history[0]["seconds"]}
    total = sum(seconds.values())
    return {
        "cell": cell.name,
        "rows": cell.rows,
        "epochs": cell.epochs,
        "testAccuracy": job.history[-1]["testAccuracy"],
        "testAuc": job.history[-1]["testAuc"],
        "modelledSeconds": total,
        "modelledSecondsByKind": seconds,
        "communicationShare": 1 - (seconds["dpuCompute"] + seconds["mramWram"]) / total,
        "twinSecondsMeasured": time.perf_counter() - started,
        "bytesPerEpoch": job.times["bytesPerRound"] * job.trainer.rounds_per_epoch,
    }


def report(folder: Path) -> None:
    """Print the cells that are there.

    Parameters
    ----------
    folder : Path
        Where they are kept.
    """
    print(f"{'cell':<36}{'accuracy':>10}{'AUC':>8}{'modelled s':>12}{'outside DPUs':>14}{'GB/epoch':>10}{'twin s':>8}")
    for file in sorted(folder.glob("*.json")):
        cell = json.loads(file.read_text())
        print(
            f"{cell['cell']:<36}{100 * cell['testAccuracy']:>8.2f} %{cell['testAuc']:>8.4f}"
            f"{cell['modelledSeconds']:>12.4g}{100 * cell['communicationShare']:>12.1f} %"
            f"{cell['bytesPerEpoch'] / 1e9:>10.4g}{cell['twinSecondsMeasured']:>8.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the cells")
    parser.add_argument("--all", action="store_true", help="all sizes, which takes days")
    parser.add_argument("--only", default="", help="cells whose name begins with this")
    parser.add_argument("--report", action="store_true", help="print the cells that are there")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    chosen = [] if arguments.report else [cell for cell in cells(arguments.all) if cell.name.startswith(arguments.only)]
    for number, cell in enumerate(chosen):
        file = arguments.out / f"{cell.name}.json"
        if file.exists():
            continue
        print(f"[{number + 1}/{len(chosen)}] {cell.name}", flush=True)
        beside = file.with_suffix(".part")
        beside.write_text(json.dumps(run_cell(cell), indent=2))
        beside.rename(file)
    report(arguments.out)


if __name__ == "__main__":
    main()
