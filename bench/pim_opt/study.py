# SPDX-License-Identifier: Apache-2.0
"""PIM-Opt's study on generated rows: PIM-Opt's arithmetic, rates and samples per DPU. Cells are kept and not run twice.

python bench/pim_opt/study.py --out FOLDER [--all] [--only TEXT] [--report]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nearbank import _sgd
from nearbank.dpu_machines import dpu_machine
from nearbank.sgd_data import read_data
from nearbank.sgd_options import JobOptions, settings_of
from nearbank.sgd_times import shape_of
from nearbank.sgd_training import SAMPLE_ENTRIES, run_epochs, start_job
from rooflines import MACHINES, roofline

#: Published exponents (rate, L2 or rho, alpha) and batches, of which the first is the default; those of GA-SGD are of
#: all DPUs together. Source: CMU-SAFARI/PIM-Opt, host/app.c of each program.
PUBLISHED = {
    ("yfcc", "ma-sgd", "lr"): (6, 12, 63, (8, 16, 32, 64)),
    ("yfcc", "ma-sgd", "svm"): (6, 10, 63, (8, 16, 32, 64)),
    ("yfcc", "ga-sgd", "lr"): (4, 10, 63, (8192, 4096, 16384, 32768)),
    ("yfcc", "ga-sgd", "svm"): (6, 8, 63, (8192, 4096, 16384, 32768)),
    ("yfcc", "admm", "lr"): (6, 12, 4, (8, 16, 32, 64)),
    ("yfcc", "admm", "svm"): (6, 10, 12, (8, 16, 32, 64)),
    ("criteo", "ma-sgd", "lr"): (0, 12, 63, (2048, 1024, 4096, 8192)),
    ("criteo", "ma-sgd", "svm"): (2, 12, 63, (2048, 1024, 4096, 8192)),
    ("criteo", "ga-sgd", "lr"): (0, 12, 63, (262144, 131072, 524288, 1048576)),
    ("criteo", "ga-sgd", "svm"): (2, 12, 63, (262144, 131072, 524288, 1048576)),
    ("criteo", "admm", "lr"): (0, 12, 6, (2048, 1024, 4096, 8192)),
    ("criteo", "admm", "svm"): (1, 12, 8, (2048, 1024, 4096, 8192)),
}
#: Training rows on 256 DPUs; weak scaling keeps the rows of each DPU, strong scaling the sum.
ROWS = {"yfcc": 851_968, "criteo": 50_331_648}
TEST_ROWS = {"yfcc": 21_299, "criteo": 200_000}
DPU_COUNTS = (256, 512, 1024, 2048)
#: Rows of either data set, described.
SHAPES = {
    "yfcc": {"features": 4096, "entriesPerRow": 4096, "isSparse": False, "hasValues": False},
    "criteo": {"features": 1_000_000, "entriesPerRow": 39, "isSparse": True, "hasValues": False},
}
#: Processes of the paper's CPU baseline.
BASELINE_PROCESSES = 128
#: Epochs of the paper's runs, which times are given for.
PAPER_EPOCHS = 10


@dataclass(frozen=True)
class Cell:
    """One run of the study: times only, or training of some epochs too."""

    dataset: str
    algorithm: str
    model: str
    dpus: int
    scaling: str
    batch: int
    epochs: int = 0
    #: Trains that part of the rows on that part of the DPUs, which leaves rows of a DPU and rounds as they are.
    part: int = 1

    @property
    def name(self) -> str:
        """File name of the cell."""
        kind = f"train{self.epochs}" if self.epochs else "time"
        parts = (kind, self.dataset, self.algorithm, self.model, self.scaling, self.dpus, self.batch)
        return "-".join(str(part) for part in parts) + (f"-part{self.part}" if self.part > 1 else "")

    @property
    def rows(self) -> int:
        """Training rows."""
        return ROWS[self.dataset] // self.part * (self.dpus // 256 if self.scaling == "weak" else 1)

    def options(self, dpus: int) -> JobOptions:
        """Give the published settings, for a job on `dpus` DPUs whose rows and steps are those of this cell's DPUs."""
        rate, penalty, alpha, _ = PUBLISHED[self.dataset, self.algorithm, self.model]
        return JobOptions(
            algorithm=self.algorithm,
            model=self.model,
            compat="pim-opt",
            machine=f"upmem-{max(dpus, 2048)}",
            n_dpus=dpus,
            batch_size=max(1, self.batch // self.dpus) if self.algorithm == "ga-sgd" else self.batch,
            max_iter=self.epochs or 1,
            eta0=2.0**-rate,
            rho=2.0**-penalty,
            alpha=2.0**-alpha if self.algorithm == "admm" else 2.0**-penalty,
            times="modelled" if self.epochs else "sampled",
        )


def time_cells() -> list[Cell]:
    """List the cells of times: weak and strong scaling, and at 2,048 DPUs all published batches.

    Returns
    -------
    list of Cell
        The 120 runs of the paper.
    """
    found = []
    for (dataset, algorithm, model), (_, _, _, batches) in PUBLISHED.items():
        for scaling in ("weak", "strong"):
            for dpus in DPU_COUNTS:
                if scaling == "strong" and dpus == 256:
                    continue  # The same as weak.
                chosen = batches if scaling == "weak" and dpus == 2048 else batches[:1]
                found += [Cell(dataset, algorithm, model, dpus, scaling, batch) for batch in chosen]
    return found


def training_cells(everything: bool) -> list[Cell]:
    """List the cells that train: strong scaling of an eighth of rows and DPUs, which two cores can do, or all.

    Parameters
    ----------
    everything : bool
        Weak scaling and all rows too.

    Returns
    -------
    list of Cell
        Quick ones first.
    """
    found = []
    for (dataset, algorithm, model), (_, _, _, batches) in PUBLISHED.items():
        epochs = 3 if dataset == "yfcc" else 1
        for part, scaling in ((8, "strong"), (1, "strong"), (1, "weak")) if everything else ((8, "strong"),):
            found += [Cell(dataset, algorithm, model, dpus, scaling, batches[0], epochs, part) for dpus in DPU_COUNTS]
    return sorted(found, key=lambda cell: cell.rows * (48 if cell.dataset == "criteo" else 4096) * cell.epochs)


@cache
def sample_dpu(dataset: str, rows: int, options: JobOptions) -> tuple[dict, int, dict]:
    """Train one DPU's rows for an epoch, then simulate its next round; the same for all cells with such DPUs.

    Parameters
    ----------
    dataset : str
        ``"yfcc"`` or ``"criteo"``.
    rows : int
        Rows of a DPU.
    options : JobOptions
        Of a job on one DPU.

    Returns
    -------
    (dict, int, dict)
        Sample, rounds of an epoch, shape of the rows.
    """
    data = read_data(f"{dataset}-like:{rows}")
    job = start_job(data, options)
    run_epochs(job, 1)
    sample = json.loads(job.trainer.sample_round(job.simulation, SAMPLE_ENTRIES))
    return sample, job.trainer.rounds_per_epoch, shape_of(data)


def time_cell(cell: Cell) -> dict:
    """Take the work of the DPUs from a simulated round, and model transfers and the host.

    Parameters
    ----------
    cell : Cell
        What to time.

    Returns
    -------
    dict
        Seconds of `PAPER_EPOCHS` epochs by kind, share of communication, bytes of an epoch.
    """
    sample, rounds, shape = sample_dpu(cell.dataset, cell.rows // cell.dpus, cell.options(1))
    options = cell.options(cell.dpus)
    machine = dpu_machine(options.machine)
    settings = json.dumps(settings_of(options, options.eta0, machine=machine))
    times = json.loads(_sgd.times(settings, machine, json.dumps(dict(shape, rows=cell.rows))))
    seconds = {kind: value * rounds * PAPER_EPOCHS for kind, value in times["round"].items()}
    modelled = seconds["dpuCompute"] + seconds["mramWram"]
    dpu = sample["cycles"] / (machine.clock_mhz * 1e6) * rounds * PAPER_EPOCHS
    seconds["dpuCompute"] = dpu * sample["cyclesWithoutDma"] / sample["cycles"]
    seconds["mramWram"] = dpu - seconds["dpuCompute"]
    total = sum(seconds.values())
    communication = seconds["toDpu"] + seconds["fromDpu"] + seconds["aggregation"]
    return {
        "cell": cell.name,
        "rows": cell.rows,
        "epochs": PAPER_EPOCHS,
        "seconds": total,
        "secondsByKind": seconds,
        "modelledOverSimulatedDpu": modelled / dpu,
        "communicationShare": communication / total,
        "bytesPerEpoch": times["bytesPerRound"] * rounds,
        "sample": sample,
    }


def training_cell(cell: Cell) -> dict:
    """Train one cell with the twin.

    Parameters
    ----------
    cell : Cell
        What to train.

    Returns
    -------
    dict
        Accuracy and AUC of the simulated arithmetic after each epoch, and the twin's own time, measured.
    """
    data = read_data(f"{cell.dataset}-like:{cell.rows}")
    test = read_data(f"{cell.dataset}-like:{TEST_ROWS[cell.dataset]},firstRow={1 << 32}")
    started = time.perf_counter()
    job = start_job(data, cell.options(cell.dpus // cell.part))
    run_epochs(job, cell.epochs, test_rows=test.rows(job.settings))
    return {
        "cell": cell.name,
        "rows": cell.rows,
        "epochs": cell.epochs,
        "testAccuracy": [entry["testAccuracy"] for entry in job.history],
        "testAuc": [entry["testAuc"] for entry in job.history],
        "twinSecondsMeasured": time.perf_counter() - started,
    }


def run(cells: Iterable[Cell], folder: Path) -> None:
    """Run the cells that are not there yet; each is written whole or not at all.

    Parameters
    ----------
    cells : iterable of Cell
        The cells.
    folder : Path
        Where they are kept.
    """
    cells = list(cells)
    for number, cell in enumerate(cells):
        file = folder / f"{cell.name}.json"
        if file.exists():
            continue
        print(f"[{number + 1}/{len(cells)}] {cell.name}", flush=True)
        beside = file.with_suffix(".part")
        beside.write_text(json.dumps(training_cell(cell) if cell.epochs else time_cell(cell), indent=2))
        beside.rename(file)


def report(folder: Path) -> str:
    """Describe the cells that are there.

    Parameters
    ----------
    folder : Path
        Where they are kept.

    Returns
    -------
    str
        Tables in Markdown: times, trainings, bounds of other machines.
    """
    cells = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    kinds = {"dpuCompute": "compute", "mramWram": "MRAM", "toDpu": "to DPUs", "fromDpu": "from DPUs"}
    kinds |= {"aggregation": "host", "launch": "launch"}
    lines = [f"| {PAPER_EPOCHS} epochs | s | {' | '.join(kinds.values())} | communication | GB an epoch |"]
    lines.append("|---|" + "---|" * (len(kinds) + 3))
    for cell in cells:
        if cell["cell"].startswith("time"):
            by_kind = " | ".join(f"{cell['secondsByKind'][kind]:.3g}" for kind in kinds)
            lines.append(
                f"| {cell['cell'].removeprefix('time-')} | {cell['seconds']:.4g} | {by_kind} "
                f"| {100 * cell['communicationShare']:.1f} % | {cell['bytesPerEpoch'] / 1e9:.4g} |"
            )
    lines += ["", "| trained | accuracy after each epoch | AUC | twin, s (measured) |", "|---|---|---|---|"]
    for cell in cells:
        if cell["cell"].startswith("train"):
            accuracies = ", ".join(f"{100 * share:.2f} %" for share in cell["testAccuracy"])
            lines.append(
                f"| {cell['cell'].partition('-')[2]} | {accuracies} "
                f"| {cell['testAuc'][-1]:.4f} | {cell['twinSecondsMeasured']:.0f} |"
            )
    lines += ["", *_bounds(cells)]
    return "\n".join(lines)


def _bounds(cells: list[dict]) -> list[str]:
    """Set weak scaling on 2,048 DPUs beside bounds of the paper's machines."""
    by_name = {cell["cell"]: cell for cell in cells}
    others = " | ".join(f"{name}, s | PIM faster" for name in MACHINES)
    lines = [f"| {PAPER_EPOCHS} epochs, 2,048 DPUs, weak | PIM, s | {others} |"]
    lines.append("|---|---|" + "---|---|" * len(MACHINES))
    for (dataset, algorithm, model), (_, _, _, batches) in PUBLISHED.items():
        cell = Cell(dataset, algorithm, model, 2048, "weak", batches[0])
        timed = by_name.get(cell.name)
        if timed is None:
            continue
        # The baselines' processes have the batch of a DPU, GA-SGD's all together that of all.
        steps = cell.rows // (cell.batch if algorithm == "ga-sgd" else cell.batch * BASELINE_PROCESSES)
        row = f"| {dataset}, {algorithm}, {model} | {timed['seconds']:.4g} |"
        for machine in MACHINES:
            bound = PAPER_EPOCHS * roofline(machine, cell.rows, SHAPES[dataset]["entriesPerRow"], steps)
            row += f" {bound:.3g} | {bound / timed['seconds']:.2g}x |"
        lines.append(row)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the cells")
    parser.add_argument("--all", action="store_true", help="all sizes, which takes days")
    parser.add_argument("--only", default="", help="cells whose name begins with this")
    parser.add_argument("--report", action="store_true", help="print the cells that are there")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not arguments.report:
        cells = [*time_cells(), *training_cells(arguments.all)]
        run([cell for cell in cells if cell.name.startswith(arguments.only)], arguments.out)
    print(report(arguments.out))


if __name__ == "__main__":
    main()
