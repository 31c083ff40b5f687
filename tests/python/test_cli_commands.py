# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line against a session that returns made-up documents."""

import csv
import io
import json
import os
import sys
import types
from pathlib import Path

import nearbank
import pytest
from nearbank import cli, cli_run
from nearbank.errors import ErrorReport, InternalError, make_error
from nearbank.report import Report
from run_document_sample import make_document


class Session(types.ModuleType):
    """Stands for nearbank.session; records its calls."""

    def __init__(self):
        super().__init__("nearbank.session")
        self.calls = []
        self.failure = None

    def _call(self, verb, spec, options):
        self.calls.append((verb, spec, options))
        options["progress"]("profile", 0, 14)
        options["progress"]("profile", 14, 14)
        if self.failure:
            raise self.failure
        document = make_document(policy=options["policy"], simulate=options["simulate"])
        document["runs"][0]["messages"] = ["profile database was set aside"]
        return Report(document)

    def plan(self, spec, **options):
        return self._call("plan", spec, options)

    def run(self, spec, **options):
        return self._call("run", spec, options)


@pytest.fixture
def session(monkeypatch, tmp_path):
    made = Session()
    monkeypatch.setitem(sys.modules, "nearbank.session", made)
    monkeypatch.setattr(nearbank, "session", made, raising=False)
    monkeypatch.setenv("NEARBANK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def core(monkeypatch):
    values = [
        {"path": "core.count", "value": "64", "unit": "cores", "source": "a paper", "layer": "machines/nmc-64.yaml:7"},
        {
            "path": "vault.bandwidthGBs",
            "value": "10.0",
            "unit": "GB/s",
            "source": "HMC",
            "layer": "machines/nmc-64.yaml:30",
        },
    ]

    def show_machine(name, sets):
        if name != "nmc-64":
            raise make_error("user", "NB0101", "unknown machine", actual=repr(name), fix="did you mean 'nmc-64'?")
        for path, value in json.loads(sets):
            for entry in values:
                if entry["path"] == path:
                    entry.update(value=value, layer=f"--set {path}={value}")
        return json.dumps({"values": values})

    made = types.ModuleType("nearbank._core")
    made.list_machines = lambda: ["nmc-128", "nmc-32", "nmc-64"]
    made.show_machine = show_machine
    made.version_info = lambda: json.dumps({"llvm": "22.1.8"})
    monkeypatch.setitem(sys.modules, "nearbank._core", made)
    monkeypatch.setattr(nearbank, "_core", made, raising=False)
    return made


def test_run_prints_table_verdict_and_where_the_report_is(session, capsys, tmp_path):
    assert cli.main(["run", "minilm"]) == 0
    printed = capsys.readouterr()
    folder = tmp_path / "nearbank-out" / "minilm-nmc-64-two-stage"
    lines = printed.out.splitlines()
    assert lines[0] == "minilm on nmc-64, policy two-stage"
    assert lines[-2].startswith("two-stage places 12 of 69 nests on nmc-64")
    assert lines[-1] == f"report: {folder / 'report.html'}"
    assert {"run.json", "report.html"} <= {path.name for path in folder.iterdir()}
    assert "profile (14)" in printed.err
    assert printed.err.count("profile (14)") == 1
    assert "note: profile database was set aside\n" in printed.err


def test_options_reach_the_session(session):
    words = [
        "run",
        "m.py:make",
        "--machine",
        "my.yaml",
        "--policy",
        "greedy",
        "--simulate",
        "none",
        "--threads",
        "3",
        "--batch",
        "5",
        "--dtype",
        "bf16",
        "--decode",
        "--context",
        "7",
        "--layers",
        "2",
        "--weights",
        "random",
        "--pin",
        "n1",
        "--pin",
        "model.py:41",
        "--forbid",
        "encoder",
        "--on-unsupported",
        "error",
        "--db",
        "p.sqlite",
        "--set",
        "core.count=32",
        "--set",
        "link.latencyNs=30",
        "--jobs",
        "3",
        "--host",
        "native",
        "--train",
        "--emit-upmem",
        "projects",
        "--out",
        "here",
    ]
    assert cli.main(words) == 0
    verb, spec, options = session.calls[0]
    options.pop("progress")
    assert (verb, spec) == ("run", "m.py:make")
    assert options == {
        "machine": "my.yaml",
        "policy": "greedy",
        "host": "native",
        "simulate": "none",
        "threads": 3,
        "batch": 5,
        "dtype": "bf16",
        "tokens": None,
        "decode": True,
        "context": 7,
        "layers": 2,
        "weights": "random",
        "pin": ["n1", "model.py:41"],
        "forbid": ["encoder"],
        "on_unsupported": "error",
        "db": "p.sqlite",
        "set": [("core.count", "32"), ("link.latencyNs", "30")],
        "jobs": 3,
        "train": True,
        "emit_upmem": Path("projects"),
    }
    assert Path("here/run.json").exists()


def test_plan_samples_unless_asked_otherwise(session):
    assert cli.main(["plan", "mlp"]) == 0
    assert cli.main(["plan", "mlp", "--simulate", "exact"]) == 0
    assert [call[2]["simulate"] for call in session.calls] == ["sampled", "exact"]
    assert {call[0] for call in session.calls} == {"plan"}


def test_json_and_csv_are_all_that_stdout_carries(session, capsys):
    assert cli.main(["run", "minilm", "--format", "json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["schema"] == "nearbank-run-1"
    assert "report: " in printed.err
    assert cli.main(["run", "minilm", "--format", "csv"]) == 0
    assert len(list(csv.reader(io.StringIO(capsys.readouterr().out)))) == 70


def test_a_sweep_is_one_call(session):
    words = ["--machine", "nmc-32,nmc-64", "--policy", "all", "--set", "vault.bandwidthGBs=5,10"]
    assert cli.main(["plan", "mlp", *words]) == 0
    ((_, _, options),) = session.calls
    assert (options["machine"], options["policy"]) == ("nmc-32,nmc-64", "all")
    assert options["set"] == [("vault.bandwidthGBs", "5,10")]
    assert options["jobs"] == len(os.sched_getaffinity(0))
    assert Path("nearbank-out/mlp-nmc-32+nmc-64-all/run.json").exists()


def test_no_jobs_are_a_usage_error(session, capsys):
    assert cli.main(["plan", "mlp", "--jobs", "0"]) == 2
    assert "error[NB0004]" in capsys.readouterr().err


def test_mpi_without_its_package_says_what_to_install(session, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert cli.main(["plan", "mlp", "--mpi"]) == 3
    printed = capsys.readouterr().err
    assert "error[NB0604]" in printed and "pip install mpi4py" in printed
    assert not session.calls


def test_a_baseline_that_is_not_there_is_refused_before_planning(session, capsys):
    assert cli.main(["plan", "mlp", "--baseline", "nowhere"]) == 1
    assert "error[NB0605]" in capsys.readouterr().err
    assert not session.calls


def test_a_baseline_shows_what_changed(session, capsys):
    assert cli.main(["plan", "mlp", "--out", "before"]) == 0
    capsys.readouterr()
    assert cli.main(["plan", "mlp", "--policy", "pim-only", "--baseline", "before", "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["comparison"]["runs"]
    assert run["baselineLabel"][2] == "two-stage" and run["label"][2] == "pim-only"
    assert {"nestsOnPim"} <= {change["name"] for change in run["summary"]}
    assert {(nest["before"], nest["after"]) for nest in run["nests"]} == {("host", "pim")}
    assert "Differences from before" in Path("nearbank-out/mlp-nmc-64-pim-only/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "first", "fix"),
    [
        (["run", "mlp", "--polcy", "x"], "error[NB0001]: unknown option", "did you mean --policy?"),
        (["rn"], "error[NB0002]: unknown command", "did you mean 'run'?"),
        (["run"], "error[NB0003]: a word is missing on the command line", "nearbank run --help"),
        (
            ["run", "mlp", "--format", "xml"],
            "error[NB0004]: a word on the command line is not valid",
            "nearbank run --help",
        ),
        (
            ["run", "mlp", "--threads", "-1"],
            "error[NB0004]: a word on the command line is not valid",
            "nearbank run --help",
        ),
        (
            ["run", "mlp", "--simulate", "some"],
            "error[NB0004]: a word on the command line is not valid",
            "nearbank run --help",
        ),
        (["run", "mlp", "extra"], "error[NB0004]: a word on the command line is not valid", "nearbank run --help"),
        (
            ["run", "mlp", "--set", "core.count"],
            "error[NB0004]: a word on the command line is not valid",
            "nearbank machines show nmc-64 lists the keys",
        ),
        (["machines", "shw"], "error[NB0002]: unknown command", "did you mean 'show'?"),
    ],
)
def test_usage_errors_have_the_one_shape_and_exit_with_2(session, capsys, words, first, fix):
    assert cli.main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert lines[0] == first
    assert f"  fix:      {fix}" in lines
    assert lines[-1] == f"  more:     nearbank explain {first[6:12]}"


def test_the_full_text_of_an_unknown_option(capsys):
    assert cli.main(["version", "--formt", "json"]) == 2
    assert capsys.readouterr().err == (
        "error[NB0001]: unknown option\n"
        "  where:    nearbank version --formt json\n"
        "  expected: --format\n"
        "  actual:   --formt\n"
        "  fix:      did you mean --format?\n"
        "  more:     nearbank explain NB0001\n"
    )


@pytest.mark.parametrize(("kind", "code"), [("user", 1), ("device", 3)])
def test_errors_of_the_session_decide_the_exit_code(session, capsys, kind, code):
    session.failure = make_error(kind, "NB0101", "unknown machine", actual="'nmc-6'")
    assert cli.main(["run", "mlp"]) == code
    assert "error[NB0101]: unknown machine\n  actual:   'nmc-6'\n" in capsys.readouterr().err
    assert not Path("nearbank-out").exists()


def test_unexpected_failures_write_a_repro_folder(session, capsys, tmp_path):
    session.failure = ZeroDivisionError("division by zero")
    session.failure.repro_files = {"input.mlir": "module {}"}
    assert cli.main(["run", "mlp", "--machine", "my machine.yaml"]) == 4
    text = capsys.readouterr().err
    assert "error[NB0900]: unexpected failure inside Nearbank" in text
    assert "ZeroDivisionError: division by zero" in text
    (folder,) = (tmp_path / "home" / "repro").iterdir()
    assert f"sh {folder / 'rerun.sh'}" in text
    assert (folder / "input.mlir").read_text() == "module {}"
    assert "ZeroDivisionError" in (folder / "traceback.txt").read_text()
    assert (folder / "command.txt").read_text() == "nearbank run mlp --machine 'my machine.yaml'\n"
    assert "python" in json.loads((folder / "versions.json").read_text())


def test_internal_errors_keep_their_text_and_say_how_to_see_them_again(session, capsys):
    session.failure = InternalError(ErrorReport("NB0902", "the placed program is inconsistent", where="n3"))
    assert cli.main(["run", "mlp"]) == 4
    text = capsys.readouterr().err
    assert "error[NB0902]: the placed program is inconsistent\n  where:    n3\n" in text
    assert "this is a bug in Nearbank; see it again with: sh " in text


def test_an_interrupt_ends_with_130_and_a_line(session, capsys):
    session.failure = KeyboardInterrupt()
    assert cli.main(["run", "mlp"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "interrupted; nothing more was written"


def test_a_folder_that_cannot_be_written_is_found_before_anything_runs(session, capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    assert cli.main(["run", "mlp", "--out", "taken"]) == 3
    assert "error[NB0601]: the output folder cannot be written\n  where:    taken\n" in capsys.readouterr().err
    assert session.calls == []


def test_a_read_only_folder_is_a_device_error(session, capsys, monkeypatch, tmp_path):
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")
    assert cli.main(["run", "mlp", "--out", "locked"]) == 3
    assert "  actual:   Permission denied\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "machine", "name"),
    [
        ("minilm", "nmc-64", "minilm-nmc-64-two-stage"),
        ("dir/model.py:make", "dir/my.yaml", "model.make-my-two-stage"),
        ("../a b.py:f", "nmc-32", "a_b.f-nmc-32-two-stage"),
    ],
)
def test_the_default_folder_names_spec_machine_and_policy(spec, machine, name):
    request = cli_run.Request("run", spec, machine=machine)
    assert cli_run.default_folder(request) == Path("nearbank-out") / name


def test_report_prints_again_and_renews_the_page(session, capsys, tmp_path):
    cli.main(["run", "minilm", "--out", "here"])
    first = capsys.readouterr().out
    (tmp_path / "here" / "report.html").write_text("old")
    assert cli.main(["report", "here"]) == 0
    assert first.startswith(capsys.readouterr().out)
    assert (tmp_path / "here" / "report.html").read_text().startswith("<!doctype html>")
    assert cli.main(["report", "nowhere"]) == 1
    assert "error[NB0605]: there is no report here" in capsys.readouterr().err


def test_machines_are_listed_and_shown_with_sources(core, capsys):
    assert cli.main(["machines"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == ["nmc-128", "nmc-32", "nmc-64"]
    assert cli.main(["machines", "list", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"machines": ["nmc-128", "nmc-32", "nmc-64"]}
    assert cli.main(["machines", "show", "nmc-64"]) == 0
    assert "core.count                 64  cores  machines/nmc-64.yaml:7   a paper" in capsys.readouterr().out
    assert cli.main(["machines", "show", "nmc-64", "--set", "core.count=8", "--format", "csv"]) == 0
    assert "core.count,8,cores,a paper,--set core.count=8" in capsys.readouterr().out
    assert cli.main(["machines", "show", "nmc-6"]) == 1
    assert "did you mean 'nmc-64'?" in capsys.readouterr().err


def test_version_names_what_it_was_built_with(core, capsys):
    assert cli.main(["version"]) == 0
    assert "llvm 22.1.8" in capsys.readouterr().out.splitlines()
    assert cli.main(["--version"]) == 0
    assert cli.main(["version", "--format", "json"]) == 0
