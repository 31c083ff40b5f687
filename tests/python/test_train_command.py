# SPDX-License-Identifier: Apache-2.0
"""Tests of `nearbank train`: results, formats, folder, checkpoints, ranks, refusals."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nearbank._sgd")

from nearbank import sgd_training, upmem_home  # noqa: E402
from nearbank.cli import main  # noqa: E402
from nearbank.errors import DeviceError  # noqa: E402
from nearbank.report_files import write_files  # noqa: E402
from nearbank.sgd_data import read_data  # noqa: E402
from nearbank.sgd_page import _ticks  # noqa: E402


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """One-hot rows in LIBSVM format, separable up to noise: training and test file."""
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(5)
    weights = random.normal(size=60)
    paths = []
    for name, count in (("train", 1500), ("test", 500)):
        lines = []
        for _ in range(count):
            indices = np.sort(random.choice(60, size=9, replace=False))
            label = 1 if weights[indices].sum() + 0.3 * random.normal() > 0 else -1
            lines.append(f"{label:+d} " + " ".join(f"{index + 1}:1" for index in indices))
        path = folder / f"{name}.svm"
        path.write_text("\n".join(lines) + "\n")
        paths.append(str(path))
    return paths


def train(tmp_path, rows, *words):
    return main(["train", "--data", rows[0], "--test", rows[1], "--out", str(tmp_path / "out"), *words])


@pytest.mark.parametrize("algorithm", ["ga-sgd", "ma-sgd", "admm"])
@pytest.mark.parametrize("model", ["lr", "svm"])
@pytest.mark.parametrize("arithmetic", ["q31", "f32"])
def test_every_combination_learns(tmp_path, rows, capsys, algorithm, model, arithmetic):
    words = ("--algorithm", algorithm, "--model", model, "--arithmetic", arithmetic, "--dpus", "16")
    assert train(tmp_path, rows, *words, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "nearbank-train-1"
    assert document["summary"]["testAccuracy"]["value"] > 0.9
    assert document["summary"]["simulatedTime"]["kind"] == "simulated"
    assert document["summary"]["timeByKind"]["toDpu"]["kind"] == "modelled"
    assert [sample["epoch"] for sample in document["runs"][0]["samples"]] == [1, 2, 4, 8]
    assert len(document["rounds"]) == 10
    traffic = document["runs"][0]["traffic"]
    counted = sum(entry["bytes"] for entry in traffic["moved"] if entry["cargo"] in ("model", "gradient", "pull"))
    assert counted == traffic["closedFormBytes"] * document["summary"]["rounds"]["value"]


def test_text_names_accuracy_time_and_its_kind(tmp_path, rows, capsys):
    assert train(tmp_path, rows, "--dpus", "8", "--epochs", "2") == 0
    text = capsys.readouterr().out
    assert "% test accuracy after 2 epochs on 8 DPUs of upmem-2048" in text
    assert "(simulated)" in text
    assert "DPU compute" in text
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Where the time goes" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    stored = np.load(tmp_path / "out" / "model.npz")
    assert stored["coefficients"].shape == (60,)


@pytest.mark.parametrize("algorithm", ["ga-sgd", "ma-sgd", "admm"])
def test_simulated_dpus_give_the_twins_figures(tmp_path, rows, capsys, algorithm):
    engines = ["twin", "exact"]
    if (upmem_home.folder() / "lib" / "libnearbank_translate.so").exists():
        engines.append("fast")
    words = ("--algorithm", algorithm, "--dpus", "4", "--epochs", "2", "--eta0", "1", "--format", "json")
    runs = {}
    for engine in engines:
        assert train(tmp_path / engine, rows, *words, "--simulate", engine) == 0
        runs[engine] = json.loads(capsys.readouterr().out)["runs"][0]
    twin = np.load(tmp_path / "twin" / "out" / "model.npz")
    seconds = {engine: run["summary"]["timeByKind"]["dpuCompute"]["value"] for engine, run in runs.items()}
    for engine in engines[1:]:
        stored = np.load(tmp_path / engine / "out" / "model.npz")
        assert (stored["coefficients"] == twin["coefficients"]).all()
        assert stored["intercept"] == twin["intercept"]
        assert runs[engine]["engine"] == engine
        assert runs[engine]["summary"]["testLoss"] == runs["twin"]["summary"]["testLoss"]
        assert seconds[engine] == pytest.approx(seconds["exact"], rel=0.02)
    # Rounds differ in the rows that they take; samples stand for all of them.
    assert seconds["twin"] == pytest.approx(seconds["exact"], rel=0.15)


def test_unequal_shares_make_dpus_wait(tmp_path, capsys):
    # 9 rows on 4 DPUs: 2, 2, 2 and 3.
    lines = [f"{row % 2} {row % 5 + 1}:1\n" for row in range(9)]
    (tmp_path / "rows.svm").write_text("".join(lines))
    runs = {}
    for engine in ("twin", "exact"):
        words = [
            "--data",
            str(tmp_path / "rows.svm"),
            "--dpus",
            "4",
            "--epochs",
            "1",
            "--eta0",
            "1",
            "--simulate",
            engine,
        ]
        words += ["--algorithm", "admm", "--batch", "4", "--out", str(tmp_path / engine), "--format", "json"]
        assert main(["train", *words]) == 0
        runs[engine] = json.loads(capsys.readouterr().out)["summary"]
    times = runs["twin"]["timeByKind"]
    busy = times["dpuCompute"]["value"] + times["mramWram"]["value"]
    assert times["waiting"]["value"] == pytest.approx(busy / 3)  # A mean share of 9/4 rows of 3.
    assert times["waiting"]["kind"] == "modelled"
    # The work of a step that does not depend on its rows is the same on all DPUs.
    simulated = runs["exact"]["timeByKind"]["waiting"]
    assert simulated["kind"] == "simulated"
    assert 0 < simulated["value"] < times["waiting"]["value"]
    # Bytes grow with the rows, all but those of the model.
    assert 0.7 < runs["exact"]["mramWramBytes"]["value"] / runs["twin"]["mramWramBytes"]["value"] < 1.4


def test_times_can_be_modelled_without_simulated_dpus(tmp_path, rows, capsys, monkeypatch):
    monkeypatch.setenv("NEARBANK_UPMEM_HOME", str(tmp_path))
    for words in (("--times", "sampled"), ("--simulate", "exact")):
        assert train(tmp_path, rows, "--dpus", "8", "--epochs", "1", *words) == 3
        assert "error[NB0809]" in capsys.readouterr().err
    for times in ("auto", "modelled"):
        assert train(tmp_path, rows, "--dpus", "8", "--epochs", "1", "--times", times) == 0
        assert "(modelled)" in capsys.readouterr().out


def test_a_compiler_that_fails_is_named(tmp_path, rows, capsys, monkeypatch):
    monkeypatch.setenv("NEARBANK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEARBANK_CLANG", "no-such-clang")
    assert train(tmp_path, rows, "--dpus", "8", "--epochs", "1", "--times", "sampled") == 3
    printed = capsys.readouterr().err
    assert "error[NB0710]: the training kernel cannot be compiled" in printed
    assert "no-such-clang" in printed
    assert not list((tmp_path / "home" / "kernels").iterdir())


def test_several_numbers_of_dpus_show_the_scaling(tmp_path, rows, capsys):
    assert train(tmp_path, rows, "--dpus", "4,16", "--epochs", "2", "--eta0", "1", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["dpus"] for run in document["runs"]] == [4, 16]
    assert all((tmp_path / "out" / run["weights"]["file"]).exists() for run in document["runs"])
    assert 'id="scaling"' in (tmp_path / "out" / "report.html").read_text()


def test_axes_of_the_page_have_round_numbers():
    assert _ticks(0.8336, 0.8475) == pytest.approx([0.835, 0.8375, 0.84, 0.8425, 0.845, 0.8475])
    assert _ticks(0, 0.633) == pytest.approx([0, 0.2, 0.4, 0.6])
    assert _ticks(0, 2048) == pytest.approx([0, 500, 1000, 1500, 2000])
    for high in np.geomspace(1e-6, 1e6, 50):
        assert 3 <= len(_ticks(0.3 * high, high)) <= 8


def test_an_interrupted_run_goes_on_to_the_same_model(tmp_path, rows, capsys, monkeypatch):
    words = ("--algorithm", "admm", "--dpus", "8", "--format", "json")
    assert train(tmp_path / "a", rows, *words) == 0
    whole = json.loads(capsys.readouterr().out)
    run_rounds, calls = sgd_training.run_rounds, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return run_rounds(*arguments)

    monkeypatch.setattr(sgd_training, "run_rounds", interrupted)
    assert train(tmp_path / "b", rows, *words) == 130
    monkeypatch.setattr(sgd_training, "run_rounds", run_rounds)
    capsys.readouterr()
    assert train(tmp_path / "b", rows, *words, "--resume") == 0
    resumed = json.loads(capsys.readouterr().out)
    assert resumed["rounds"] == whole["rounds"]
    first, second = (np.load(tmp_path / part / "out" / "model.npz")["coefficients"] for part in "ab")
    assert (first == second).all()


def test_a_checkpoint_of_another_job_is_refused(tmp_path, rows, capsys):
    assert train(tmp_path, rows, "--dpus", "8", "--epochs", "1", "--eta0", "1") == 0
    assert train(tmp_path, rows, "--dpus", "8", "--epochs", "2", "--eta0", "1", "--alpha", "0.01", "--resume") == 1
    assert "error[NB0706]: the checkpoint is of another job" in capsys.readouterr().err


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, rows, capsys, monkeypatch):
    words = ("--dpus", "8", "--eta0", "1")
    assert train(tmp_path, rows, *words, "--epochs", "1") == 0
    kept = (tmp_path / "out" / "checkpoint.npz").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert train(tmp_path, rows, *words, "--epochs", "2") == 3
    assert "error[NB0602]: the disk is full" in capsys.readouterr().err
    assert (tmp_path / "out" / "checkpoint.npz").read_bytes() == kept
    assert not list((tmp_path / "out").glob(".checkpoint*"))


needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")

#: `nearbank train` in which rank 2 is killed as it begins its third epoch.
DYING = """
import os, signal, sys
from nearbank import cli, sgd_training
from mpi4py import MPI
run_rounds, calls = sgd_training.run_rounds, []
def dying(*arguments):
    calls.append(1)
    if len(calls) == 3 and MPI.COMM_WORLD.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_rounds(*arguments)
sgd_training.run_rounds = dying
sys.exit(cli.main(sys.argv[1:]))
"""


JOB = ("--algorithm", "admm", "--dpus", "16", "--epochs", "4", "--eta0", "1")


def mpi_train(rows, out, ranks, *words, program=("-m", "nearbank")):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    command = ["mpirun", "--allow-run-as-root", "-n", str(ranks), sys.executable, *program, "train", "--data", rows[0]]
    environment = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1")
    return subprocess.run(
        [*command, *JOB, "--out", out, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@needs_mpi
@pytest.mark.parametrize("engine", ["twin", "exact"])
def test_four_ranks_give_the_model_of_one_process(tmp_path, rows, capsys, engine):
    result = mpi_train(rows, str(tmp_path / "four"), 4, "--simulate", engine)
    assert result.returncode == 0, result.stderr
    assert main(["train", "--data", rows[0], "--out", str(tmp_path / "one"), *JOB, "--simulate", engine]) == 0
    one, four = (np.load(tmp_path / name / "model.npz") for name in ("one", "four"))
    assert (one["coefficients"] == four["coefficients"]).all()
    assert one["intercept"] == four["intercept"]
    documents = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "four")]
    assert documents[0]["rounds"][-1]["loss"] == documents[1]["rounds"][-1]["loss"]
    if engine == "exact":  # The slowest of all DPUs, whichever rank has it.
        times = [document["summary"]["simulatedTime"]["value"] for document in documents]
        assert times[0] == pytest.approx(times[1], rel=1e-3)  # The share of DMA is that of rank 0's fullest DPU.


@needs_mpi
def test_ranks_search_the_learning_rate_of_one_process(tmp_path, rows, capsys):
    result = mpi_train(rows, str(tmp_path / "two"), 2, "--eta0", "auto")
    assert result.returncode == 0, result.stderr
    assert main(["train", "--data", rows[0], "--out", str(tmp_path / "one"), *JOB, "--eta0", "auto"]) == 0
    documents = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "two")]
    tried = [document["runs"][0]["triedRates"] for document in documents]
    assert tried[0] == tried[1] and len(tried[0]) > 10
    figures = [{**entry, "seconds": None, "dispersion": None} for document in documents for entry in document["rounds"]]
    assert figures[:4] == figures[4:]


@needs_mpi
def test_a_rank_that_dies_leaves_a_checkpoint_to_go_on_from(tmp_path, rows):
    script = tmp_path / "dying.py"
    script.write_text(DYING)
    died = mpi_train(rows, str(tmp_path / "out"), 4, program=(str(script),))
    assert died.returncode != 0
    assert "rank 2" in died.stderr and "signal 9" in died.stderr
    assert (tmp_path / "out" / "checkpoint.npz").exists()
    assert not (tmp_path / "out" / "run.json").exists()
    resumed = mpi_train(rows, str(tmp_path / "out"), 4, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert mpi_train(rows, str(tmp_path / "whole"), 4).returncode == 0
    first, second = (np.load(tmp_path / name / "model.npz")["coefficients"] for name in ("out", "whole"))
    assert (first == second).all()


@needs_mpi
def test_a_rank_that_fails_ends_all_with_one_error(tmp_path, rows):
    failed = mpi_train(rows, str(tmp_path / "out"), 3, "--batch", "10")
    assert failed.returncode == 1
    assert "error[NB0701]" in failed.stderr


def test_a_full_disk_leaves_no_file_cut_off(tmp_path):
    (tmp_path / "run.json").write_text("old")

    class Full(str):
        def encode(self):
            raise OSError(28, "No space left on device")

    with pytest.raises(DeviceError, match="NB0602"):
        write_files(tmp_path, {"run.json": "new", "report.html": Full("page")})
    assert (tmp_path / "run.json").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]
    write_files(tmp_path, {"run.json": "new"})
    assert (tmp_path / "run.json").read_text() == "new"


def test_bad_lines_stop_or_are_counted(tmp_path, rows, capsys):
    path = tmp_path / "bad.svm"
    path.write_text(Path(rows[0]).read_text() + "+1 3:1 x\n")
    words = ["train", "--data", str(path), "--dpus", "4", "--epochs", "1", "--eta0", "1", "--out", str(tmp_path / "o")]
    assert main(words) == 1
    assert f"{path}:1501:8" in capsys.readouterr().err
    assert main([*words, "--on-bad-line", "skip"]) == 0
    assert "skipped 1 malformed lines" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--dpus", "64", "--machine", "upmem-32"), 1, "error[NB0705]"),
        (("--machine", "upmen-32"), 1, "error[NB0101]"),
        (("--dpus", "many"), 2, "error[NB0004]"),
        (("--batch", "10"), 1, "error[NB0701]"),
        (("--tasklets", "25"), 1, "error[NB0701]"),
        (("--sync", "ring"), 1, "a link between DPUs"),
        (("--set", "link.chipGB=1"), 1, "error[NB0103]"),
        (("--sync", "shared-chip"), 1, "a link between DPUs"),
        (("--algorithm", "admm", "--machine", "upmem-64-link", "--sync", "ring"), 1, "error[NB0701]"),
    ],
)
def test_impossible_jobs_are_refused(tmp_path, rows, capsys, words, code, text):
    assert train(tmp_path, rows, *words) == code
    assert text in capsys.readouterr().err


BAD_FILES = {
    "one class": ("rows.svm", b"1 1:1\n1 2:1\n", "NB0707", "1 class: 1.0"),
    "three classes": ("rows.svm", b"1 1:1\n2 2:1\n3 1:1\n", "NB0707", "OneVsRestClassifier"),
    "no rows": ("rows.svm", b"# nothing\n", "NB0707", "no rows"),
    "not a number": ("rows.svm", b"1 1:1\n-1 1:nan\n", "NB0704", "rows.svm:2:6"),
    "infinite": ("rows.svm", b"1 1:1\n-1 1:inf\n", "NB0704", "a finite number"),
    "beyond a double": ("rows.svm", b"1 1:1e400\n-1 1:1\n", "NB0704", "rows.svm:1:5"),
    "index of zero": ("rows.svm", b"1 0:1\n", "NB0704", "an index from 1"),
    "descending": ("rows.svm", b"1 2:1 1:1\n", "NB0704", "an index above 2"),
    "not text": ("rows.svm", b"\x7fELF\xff\xfe 1:1\n", "NB0704", "'\\x7fELF\\xff\\xfe'"),
    "too few fields": ("rows.tsv", b"1\t2\t3\n", "NB0704", "40 fields between tabs"),
    "no arrays": ("rows.npz", b"not an archive", "NB0703", "rows.npz"),
    "no table": ("rows.parquet", b"not a table", "NB0703", "rows.parquet"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_files_that_cannot_be_used_are_refused(tmp_path, capsys, case):
    if case == "no table":
        pytest.importorskip("pyarrow")
    name, text, code, shown = BAD_FILES[case]
    path = tmp_path / name
    path.write_bytes(text)
    assert main(["train", "--data", str(path), "--out", str(tmp_path / "o")]) == 1
    printed = capsys.readouterr().err
    assert f"error[{code}]" in printed and shown in printed
    assert not list((tmp_path / "o").iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_arrays_with_values_that_are_not_finite_are_refused(tmp_path, capsys, value):
    np.savez(tmp_path / "rows.npz", X=[[0.0], [value]], y=[0, 1])
    assert main(["train", "--data", str(tmp_path / "rows.npz"), "--out", str(tmp_path / "o")]) == 1
    assert "error[NB0708]: feature is NaN or infinite" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["train", "--data", str(tmp_path / "none"), "--out", str(tmp_path / "o")]) == 1
    assert "error[NB0703]" in capsys.readouterr().err


def test_features_beyond_the_range_are_scaled_or_refused_and_it_says_so(tmp_path, capsys):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:5\n-1 2:3\n" * 4)
    words = ["train", "--data", str(path), "--dpus", "2", "--epochs", "1", "--eta0", "1", "--out", str(tmp_path / "o")]
    assert main(words) == 0
    assert "features scaled: maxabs" in capsys.readouterr().out
    assert main([*words, "--scale", "none"]) == 1
    printed = capsys.readouterr().err
    assert "error[NB0702]: feature beyond the fixed-point range" in printed and "--scale minmax" in printed
    assert main([*words, "--scale", "none", "--arithmetic", "f32"]) == 0


def test_a_model_beyond_mram_is_refused(tmp_path, capsys):
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1\n-1 20000000:1\n")
    assert main(["train", "--data", str(path), "--dpus", "2", "--eta0", "1", "--out", str(tmp_path / "o")]) == 1
    printed = capsys.readouterr().err
    assert "error[NB0705]" in printed and "the model alone is too large" in printed


def test_numpy_and_parquet_files_give_the_same_rows(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 3)), random.integers(0, 2, 50)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    parquet.write_table(pyarrow.table({"label": y, **columns}), tmp_path / "rows.parquet")
    one, two = read_data(str(tmp_path / "rows.npz")), read_data(str(tmp_path / "rows.parquet"))
    assert (one.dense == two.dense).all()
    assert (one.labels == two.labels).all()


def test_links_between_dpus_give_the_servers_model(tmp_path, rows, capsys):
    words = ("--dpus", "16", "--epochs", "2", "--eta0", "1", "--format", "json")
    figures, traffic = {}, {}
    for sync in ("server", "ring", "in-network", "shared-chip", "shared-rank", "gossip"):
        assert train(tmp_path / sync, rows, *words, "--machine", "upmem-64-link", "--sync", sync) == 0
        run = json.loads(capsys.readouterr().out)["runs"][0]
        figures[sync] = run["summary"]
        traffic[sync] = run["traffic"]["closedFormBytes"]
    for sync in ("ring", "in-network", "shared-chip", "shared-rank"):
        assert figures[sync]["testLoss"] == figures["server"]["testLoss"]
    for sync in ("ring", "in-network"):
        assert figures[sync]["simulatedTime"]["value"] < figures["server"]["simulatedTime"]["value"]
    # A chip's 8 DPUs and a rank's 64 send one sum of 64-bit numbers. 60 features and the bias: 31 pairs.
    pair = 31 * 8
    assert traffic["server"] == 16 * 2 * pair
    assert (traffic["shared-chip"], traffic["shared-rank"]) == (2 * 3 * pair, 3 * pair)
    assert abs(figures["gossip"]["testAccuracy"]["value"] - figures["server"]["testAccuracy"]["value"]) < 0.03


def test_generators_need_no_file(tmp_path, capsys):
    data = (
        "--data",
        "yfcc-like:2000,features=256,separability=3",
        "--test",
        "yfcc-like:500,firstRow=2000,features=256,separability=3",
    )
    words = ("--compat", "pim-opt", "--dpus", "16", "--epochs", "2", "--format", "json")
    assert main(["train", *data, *words, "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["testAccuracy"]["value"] > 0.8


def test_training_does_not_import_torch():
    code = "import sys; import nearbank.cli_train, nearbank.cli, nearbank.sgd_checkpoint; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
