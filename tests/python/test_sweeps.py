# SPDX-License-Identifier: Apache-2.0
"""Sweeps: what is shared between runs, what is kept in the database, and what an interrupt or a kill leaves behind."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import nearbank
import pytest
from conftest import needs_core
from nearbank import machine_files
from nearbank.errors import DeviceError, UserError
from nearbank.simulation import Task, run_tasks
from nearbank.sweep import expand

PACKAGE_ROOT = Path(nearbank.__file__).resolve().parents[1]
MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 96)
        self.down = torch.nn.Linear(96, 64)

    def forward(self, x):
        return torch.softmax(self.down(torch.nn.functional.gelu(self.up(x))), -1)

def make():
    torch.manual_seed(0)
    return Model(), (torch.randn(32, 64),)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    return "model.py:make"


@pytest.fixture
def scalar_host(tmp_path):
    """The default host without its vector unit: nothing here depends on how fast it is."""
    lines = (Path(machine_files.folder()) / "host-16.yaml").read_text().splitlines(keepends=True)
    path = tmp_path / "scalar.yaml"
    path.write_text("".join(line for line in lines if not line.startswith("  vector") or "Pj" in line))
    return str(path)


def labels(variants):
    return [(v.settings.machine, v.settings.policy, v.swept) for v in variants]


def test_combinations_stand_in_order():
    options = {"machine": "nmc-32, nmc-64", "policy": ["cpu-only", "greedy"], "set": {"a": [1, 2], "b": 3}}
    variants = expand(options, "here")
    assert labels(variants)[:3] == [
        ("nmc-32", "cpu-only", {"a": "1"}),
        ("nmc-32", "greedy", {"a": "1"}),
        ("nmc-32", "cpu-only", {"a": "2"}),
    ]
    assert len(variants) == 8
    assert variants[0].settings.set == (("a", "1"), ("b", "3"))


def test_all_policies_leave_oracle_out_where_nothing_is_simulated():
    names = [v.settings.policy for v in expand({"policy": "all", "simulate": "none"}, "here")]
    assert "oracle" not in names and len(names) > 5
    assert "oracle" in [v.settings.policy for v in expand({"policy": "all", "simulate": "sampled"}, "here")]


def test_a_wrong_word_in_a_list_is_refused():
    with pytest.raises(UserError, match="NB0404"):
        expand({"policy": "greedy,two-stge"}, "here")


@needs_core
def test_runs_share_simulations_and_a_second_sweep_makes_none(model):
    options = {"machine": "nmc-32,nmc-64", "policy": "two-stage,pim-only", "host": "native", "threads": 1}
    first = nearbank.plan(model, **options)
    assert [(run["machine"], run["policy"]) for run in first.runs] == [
        (machine, policy) for machine in ("nmc-32", "nmc-64") for policy in ("two-stage", "pim-only")
    ]
    kernels = first.runs[0]["summary"]["distinctNests"]
    assert [run["summary"]["simulatedNests"] for run in first.runs] == [kernels] * 4
    second = nearbank.plan(model, **options)
    assert [run["summary"]["simulatedNests"] for run in second.runs] == [0] * 4
    assert [run["summary"]["reusedSimulations"] for run in second.runs] == [kernels] * 4
    assert [run["nests"] for run in first.runs] == [run["nests"] for run in second.runs]


@needs_core
def test_times_depend_on_neither_processes_nor_threads(model, monkeypatch):
    # So little is worth no process by itself.
    monkeypatch.setattr("nearbank.simulation._WORTH_PROCESSES", 0.0)
    times = []
    for number, (jobs, threads) in enumerate([(1, 1), (1, 2), (2, 1), (3, 2)]):
        report = nearbank.plan(model, policy="pim-only", jobs=jobs, threads=threads, db=f"{number}.sqlite")
        times.append([nest["pimTime"] for nest in report.runs[0]["nests"]])
        assert report.runs[0]["summary"]["simulatedNests"] > 0
    assert times[0] == times[1] == times[2] == times[3]


@needs_core
def test_machine_values_that_timing_does_not_see_simulate_nothing_anew(model):
    options = {"policy": "pim-only", "host": "native", "threads": 1}
    before = nearbank.plan(model, **options).runs[0]
    for key, value, is_new in (("coherence.launchNs", "1", False), ("vault.bandwidthGBs", "5", True)):
        after = nearbank.plan(model, set={key: value}, **options).runs[0]
        assert (after["summary"]["simulatedNests"] > 0) == is_new
        assert after["summary"]["crossingTime"] == before["summary"]["crossingTime"] or not is_new


@needs_core
def test_csv_has_a_line_for_each_run(model, capsys):
    from nearbank import cli

    words = ["plan", model, "--machine", "nmc-32,nmc-64", "--set", "vault.bandwidthGBs=5,10", "--policy", "greedy"]
    assert cli.main([*words, "--format", "csv", "--out", "sweep"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["machine"], row["vault.bandwidthGBs"], row["policy"]) for row in rows] == [
        (machine, bandwidth, "greedy") for machine in ("nmc-32", "nmc-64") for bandwidth in ("5", "10")
    ]
    assert all(float(row["hostTimeNs"]) > 0 for row in rows)
    assert Path("sweep/runs.csv").read_text().count("\n") == 5


@needs_core
def test_a_modelled_host_gives_a_speedup(model, scalar_host):
    (run,) = nearbank.plan(model, policy="pim-only", host=scalar_host, threads=1).runs
    assert run["host"] == {"machine": scalar_host, "kind": "simulated"}
    summary = run["summary"]
    timed = [nest for nest in run["nests"] if not nest["hoisted"]]
    alone = sum(nest["modelledHostTime"]["value"] for nest in timed)
    assert summary["modelledHostTime"]["value"] == pytest.approx(alone)
    placed = sum(nest["pimTime"]["value"] for nest in timed) + summary["crossingTime"]["value"]
    assert summary["speedup"]["value"] == pytest.approx(alone / placed)
    assert f"against {scalar_host}" in summary["verdict"]


@needs_core
def test_oracle_with_a_modelled_host_takes_no_longer_than_any_policy(model, scalar_host):
    report = nearbank.plan(model, policy="all", host=scalar_host, threads=1)

    def total(summary):
        names = ("modelledHostTimeOfHostNests", "pimTime", "crossingTime")
        return sum(summary[name]["value"] for name in names)

    totals = {run["policy"]: total(run["summary"]) for run in report.runs}
    # Sums of doubles in another order.
    assert all(totals["oracle"] <= other * (1 + 1e-9) for other in totals.values())


def command(model, *words):
    return [sys.executable, "-m", "nearbank", "plan", model, "--db", "p.sqlite", "--host", "native", *words]


def environment():
    return {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}


def stored_simulations():
    with sqlite3.connect("p.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return database.execute("SELECT count(*) FROM simulations").fetchone()[0]


@needs_core
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_a_sweep_that_ends_early_loses_at_most_what_was_in_flight(model, number):
    machines = ",".join(f"nmc-{cores}" for cores in (32, 64, 128))
    words = [*command(model, "--machine", machines, "--simulate", "exact", "--out", "out", "--jobs", "2")]
    # The lines of progress tell when simulation has begun.
    process = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in process.stderr:
        if "simulate" in line:
            break
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if Path("p.sqlite").exists() and stored_simulations() >= 2:
            break
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=60)
    before = stored_simulations()
    assert before >= 2
    done = subprocess.run([*words, "--format", "json"], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    new = sum(run["summary"]["simulatedNests"] for run in runs)
    reused = sum(run["summary"]["reusedSimulations"] for run in runs)
    assert new + reused == stored_simulations() and reused == before


@needs_core
def test_a_simulating_process_that_dies_is_a_device_error(model, monkeypatch):
    monkeypatch.setattr("nearbank.simulation._WORTH_PROCESSES", 0.0)
    words = ["bash", "-c", "head -c 8 > /dev/null; kill -9 $$"]
    start = lambda: subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: E731
    monkeypatch.setattr("nearbank.simulation._start_worker", start)
    with pytest.raises(DeviceError, match="NB0509") as info:
        nearbank.plan(model, policy="pim-only", jobs=2)
    assert info.value.report.actual == "exit status -9"


def test_equal_simulations_are_done_once(monkeypatch):
    done, kept = [], []
    monkeypatch.setattr(
        "nearbank.simulation.simulate",
        lambda task, options: done.append(task) or {"timing": task.decode(), "seconds": 1},
    )
    tasks = [Task(key, key, 10.0, "{}", kept.append) for key in (b"a", b"b", b"a")]
    run_tasks(tasks, 1, 1, lambda *_: None)
    assert sorted(done) == [b"a", b"b"]
    assert sorted(kept) == ["a", "a", "b"]


def test_a_long_simulation_is_announced_after_the_first_seconds(monkeypatch):
    monkeypatch.setattr("nearbank.simulation.simulate", lambda task, options: {"timing": "", "seconds": 1.0})
    notes, left = [], []

    def progress(*_):
        pass

    progress.note, progress.left = notes.append, left.append
    tasks = [Task(bytes([i]), b"", 10.0, "{}", lambda _: None) for i in range(99)]
    run_tasks(tasks, 1, 1, progress)
    # Two seconds calibrate the rate: 97 of 99 tasks are left, a second each.
    assert len(notes) == 1 and "about 2 min" in notes[0]
    assert left[0] == pytest.approx(98) and left[-1] == 0


def test_tasks_of_no_instructions_calibrate_nothing(monkeypatch):
    monkeypatch.setattr("nearbank.simulation.simulate", lambda task, options: {"timing": "", "seconds": 9.0})
    notes = []

    def progress(*_):
        pass

    progress.note = notes.append
    run_tasks([Task(bytes([i]), b"", 0.0, "{}", lambda _: None) for i in range(3)], 1, 1, progress)
    assert notes == []


@needs_core
@pytest.mark.skipif(
    not shutil.which("mpirun") or not importlib.util.find_spec("mpi4py"), reason="no Open MPI, or no mpi4py"
)
def test_ranks_of_an_mpi_job_find_the_same_times(model):
    words = command(model, "--machine", "nmc-32,nmc-64", "--policy", "pim-only", "--format", "json", "--out")
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    runs = []
    for prefix, more in (([], []), (mpirun, ["--mpi"])):
        Path("p.sqlite").unlink(missing_ok=True)
        done = subprocess.run(
            [*prefix, *words, "out", *more], env={**environment(), **root}, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        runs.append(json.loads(done.stdout)["runs"])
    assert all(run["summary"]["simulatedNests"] > 0 for run in runs[1])
    times = [[nest["pimTime"] for run in each for nest in run["nests"]] for each in runs]
    assert times[0] == times[1]
