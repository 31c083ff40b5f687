# SPDX-License-Identifier: Apache-2.0
"""The document of a training run: JSON, text, page and folder."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nearbank import __version__
from nearbank.report_files import prepare_folder, write_files
from nearbank.sgd_data import DataSet
from nearbank.sgd_scaling import Scaling
from nearbank.sgd_times import TIME_KINDS, times_from
from nearbank.sgd_training import TrainedJob

SCHEMA = "nearbank-train-1"
#: What each kind of time is called where people read it.
TIME_LABELS = {
    "toDpu": "host to DPU",
    "launch": "launch",
    "dpuCompute": "DPU compute",
    "mramWram": "MRAM-WRAM movement",
    "waiting": "waiting for the slowest",
    "fromDpu": "DPU to host",
    "aggregation": "aggregation on the host",
    "link": "inter-DPU link",
}


_COUNTED = (("epochs", "epoch"), ("dpus", "DPU"))


def _q(value: float, unit: str, kind: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "kind": kind}


def _figure(value: float, kind: str = "simulated") -> dict[str, Any]:
    return _q(value, "1", kind)


def run_entry(engine: str, job: TrainedJob, data: DataSet, test: DataSet | None, scaling: Scaling) -> dict[str, Any]:
    """Describe one training run.

    Parameters
    ----------
    engine : str
        Which engine computed: ``twin``, ``exact`` or ``fast``.
    job : TrainedJob
        Trained.
    data, test : DataSet
        Rows; `test` may be None.
    scaling : Scaling
        How features were scaled.

    Returns
    -------
    dict
        An entry of the document's ``runs``.
    """
    options, traffic = job.options, job.traffic()
    kind = "simulated" if job.samples else "modelled"
    last = job.history[-1] if job.history else {}
    seconds = {name: sum(entry["seconds"][name] for entry in job.history) for name in TIME_KINDS}
    total = sum(seconds.values())
    summary: dict[str, Any] = {}
    for name, key in (("loss", "trainLoss"), ("accuracy", "trainAccuracy"), ("auc", "trainAuc")):
        if name in last:
            summary[key] = _figure(last[name])
    for name in ("testLoss", "testAccuracy", "testAuc"):
        if name in last:
            summary[name] = _figure(last[name])
    summary["simulatedTime"] = _q(total, "s", kind)
    summary["loadTime"] = _q(job.times["load"], "s", "modelled")
    summary["setUpTime"] = _q(job.times["setUp"], "s", "modelled")
    summary["timeByKind"] = {name: _q(value, "s", _kind_of_time(name, job)) for name, value in seconds.items()}
    synchronisation = total - seconds["dpuCompute"] - seconds["mramWram"]
    summary["communicationShare"] = _q(synchronisation / total if total else 0.0, "share", kind)
    summary["rounds"] = _q(job.trainer.num_rounds, "rounds", "counted")
    summary["roundsPerEpoch"] = _q(job.trainer.rounds_per_epoch, "rounds", "counted")
    moved = sum(entry["bytes"] for entry in traffic["moved"])
    summary["bytesMoved"] = _q(moved, "B", "counted")
    summary["mramWramBytes"] = _q(sum(entry["mramWramBytes"] for entry in job.history), "B", kind)
    summary["learningRate"] = _q(job.rate, "1", "counted")
    raw = scaling.model_to_raw(job.model)
    # What the arithmetic does is executed: accuracy and loss are those of the simulated machine.
    return {
        "data": {
            "name": data.name,
            "rows": data.num_rows,
            "features": data.num_features,
            "sparse": data.is_sparse,
            "badLines": data.num_bad_lines,
            "scaling": scaling.kind,
            "test": None if test is None else test.name,
            "testRows": None if test is None else test.num_rows,
        },
        "machine": job.machine.name,
        "machineValues": dict(job.machine.values()),
        "algorithm": options.algorithm,
        "model": options.model,
        "arithmetic": options.arithmetic,
        "compat": options.compat,
        "sync": options.sync,
        "engine": engine,
        "timesFrom": times_from(job),
        "samples": job.samples,
        "dpus": options.n_dpus,
        "tasklets": options.n_tasklets,
        "batch": options.batch_size,
        "epochs": len(job.history),
        "staleness": options.staleness,
        "localStepsPerRound": 0 if options.algorithm == "ga-sgd" else _local_steps(job, data),
        "triedRates": job.tried_rates,
        "summary": summary,
        "rounds": job.history,
        "traffic": traffic,
        "weights": {"intercept": float(raw[-1]), "numNonZero": int((raw[:-1] != 0).sum())},
        "_coefficients": raw,
    }


def _kind_of_time(name: str, job: TrainedJob) -> str:
    is_simulated = name in ("dpuCompute", "mramWram") or (name == "waiting" and job.options.engine != "twin")
    return "simulated" if job.samples and is_simulated else "modelled"


def _local_steps(job: TrainedJob, data: DataSet) -> int:
    steps = -(-job.times["rowsPerDpu"] // job.options.batch_size)
    return max(1, -(-steps // job.trainer.rounds_per_epoch))


def document(runs: Sequence[dict[str, Any]], command: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Join runs into a document.

    Parameters
    ----------
    runs : sequence of dict
        What `run_entry` gave; several when numbers of DPUs are compared.
    command : sequence of str
        The command line.
    options : mapping
        Its options, resolved.

    Returns
    -------
    dict
        The document. ``summary`` and ``rounds`` at the top are those of the last run.
    """
    plain = [{name: value for name, value in run.items() if not name.startswith("_")} for run in runs]
    for run in plain:
        run["weights"]["file"] = _model_file(run, len(plain))
    result = {
        "schema": SCHEMA,
        "command": list(command),
        "versions": {"nearbank": __version__},
        "options": dict(options),
        "summary": plain[-1]["summary"],
        "rounds": plain[-1]["rounds"],
        "runs": plain,
    }
    return DocumentWithModels(result, [run.get("_coefficients") for run in runs])


def _model_file(run: Mapping[str, Any], runs: int) -> str:
    return f"model-{run['dpus']}.npz" if runs > 1 else "model.npz"


class DocumentWithModels(dict):
    """A document that brings the models along, which JSON does not hold."""

    def __init__(self, values: Mapping[str, Any], models: list) -> None:
        super().__init__(values)
        self.models = models


def spoken_seconds(seconds: float) -> str:
    """Print a time with a unit that suits it.

    Parameters
    ----------
    seconds : float
        The time.

    Returns
    -------
    str
        Three digits.

    Examples
    --------
    >>> [spoken_seconds(value) for value in (0.0, 2.5e-5, 0.0123, 4.0)]
    ['0 s', '25 us', '12.3 ms', '4 s']
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor * 0.9995:
            return f"{seconds / factor:.3g} {unit}"
    return "0 s" if seconds == 0 else f"{seconds / 1e-9:.3g} ns"


def verdict(run: Mapping[str, Any]) -> str:
    """Say in one sentence how a run ended.

    Parameters
    ----------
    run : mapping
        An entry of ``runs``.

    Returns
    -------
    str
        Accuracy, time, and where the time goes.
    """
    summary = run["summary"]
    accuracy = summary.get("testAccuracy") or summary.get("trainAccuracy")
    time = summary["simulatedTime"]
    where = "test" if "testAccuracy" in summary else "training"
    epochs, dpus = (f"{run[name]} {word}{'s' if run[name] != 1 else ''}" for name, word in _COUNTED)
    return (
        f"{100 * accuracy['value']:.2f} % {where} accuracy after {epochs} on {dpus} of "
        f"{run['machine']}, in {spoken_seconds(time['value'])} ({time['kind']}); "
        f"{100 * summary['communicationShare']['value']:.0f} % of it outside the DPUs"
    )


def _rounds_table(run: Mapping[str, Any]) -> list[str]:
    columns = [("epoch", "epoch", "d"), ("loss", "loss", ".4f"), ("accuracy", "accuracy", ".4f"), ("auc", "AUC", ".4f")]
    columns += [("testLoss", "test loss", ".4f"), ("testAccuracy", "test acc", ".4f"), ("testAuc", "test AUC", ".4f")]
    columns = [column for column in columns if column[0] in run["rounds"][0]]
    lines = ["".join(f"{label:>11}" for _, label, _ in columns) + f"{'time':>12}"]
    elapsed = 0.0
    for entry in run["rounds"]:
        elapsed += sum(entry["seconds"].values())
        cells = "".join(f"{format(entry[name], form):>11}" for name, _, form in columns)
        lines.append(cells + f"{spoken_seconds(elapsed):>12}")
    return lines


def text(doc: Mapping[str, Any]) -> str:
    """Print a document.

    Parameters
    ----------
    doc : mapping
        The document.

    Returns
    -------
    str
        Lines for a terminal.
    """
    lines = []
    for run in doc["runs"]:
        data, summary = run["data"], run["summary"]
        lines.append(
            f"{run['model']} by {run['algorithm']} in {run['arithmetic']}, {data['rows']} rows x {data['features']} "
            f"features of {data['name']}, engine {run['engine']}"
        )
        if data["scaling"] != "none":
            lines.append(f"features scaled: {data['scaling']}")
        if data["badLines"]:
            lines.append(f"skipped {data['badLines']} malformed lines")
        lines.append(verdict(run))
        lines.append("")
        if len(doc["runs"]) == 1:
            lines += _rounds_table(run)
            lines.append("")
        total = summary["simulatedTime"]["value"] or 1.0
        for name, label in TIME_LABELS.items():
            quantity = summary["timeByKind"][name]
            if quantity["value"] > 0:
                share = 100 * quantity["value"] / total
                value = spoken_seconds(quantity["value"])
                lines.append(f"  {label:<26}{value:>10}  {share:5.1f} %  {quantity['kind']}")
        for name, label in (("loadTime", "load (once, not counted)"), ("setUpTime", "set-up (likewise)")):
            once = summary[name]
            lines.append(f"  {label:<26}{spoken_seconds(once['value']):>10}           {once['kind']}")
        moved = summary["bytesMoved"]["value"]
        lines.append(f"  {'bytes moved':<26}{moved / 1e6:>7.3g} MB           counted")
        dma = summary["mramWramBytes"]
        lines.append(f"  {'bytes between MRAM-WRAM':<26}{dma['value'] / 1e6:>7.3g} MB           {dma['kind']}")
        lines.append(f"  {'learning rate':<26}{summary['learningRate']['value']:>10.4g}")
        lines.append("")
    return "\n".join(lines).rstrip()


def write_folder(folder: Path, doc: DocumentWithModels) -> None:
    """Write document, page and models.

    Parameters
    ----------
    folder : Path
        Where to.
    doc : DocumentWithModels
        The document.

    Raises
    ------
    DeviceError
        NB0601 or NB0602.
    """
    import numpy as np

    from nearbank.sgd_page import page_html

    prepare_folder(folder)
    files: dict[str, bytes | str] = {"run.json": json.dumps(doc, indent=2) + "\n", "report.html": page_html(doc)}
    for run, model in zip(doc["runs"], doc.models, strict=True):
        stored = io.BytesIO()
        np.savez(stored, coefficients=model[:-1], intercept=model[-1])
        files[_model_file(run, len(doc["runs"]))] = stored.getvalue()
    write_files(folder, files)
