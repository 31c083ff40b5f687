# SPDX-License-Identifier: Apache-2.0
"""Bad input, damaged files and neighbours, through the command line on the real compiler."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import nearbank
import pytest
from conftest import needs_core
from nearbank import cli

pytestmark = needs_core

ROOT = Path(__file__).parents[2]
MODEL = """\
import torch
from torch import nn


class Picks(nn.Module):
    def forward(self, x):
        return x[x > 0] * 2


def make():
    return nn.Linear(8, 4), (torch.randn(3, 8),)


def picks():
    return Picks(), (torch.randn(8),)


def lookup():
    return nn.Embedding(10, 4), (torch.tensor([3, 10]),)


def lonely():
    return nn.Linear(8, 4)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def refused(capsys, *words) -> str:
    """Run a command that the user got wrong; return its message."""
    assert cli.main([*words]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert not Path("nearbank-out").exists()
    return printed.err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["plan", "mlp", "--machine", "nmc-6"], ["NB0101", "did you mean 'nmc-64'?"]),
        (["plan", "mlp", "--policy", "two-stge"], ["NB0404", "did you mean 'two-stage'?"]),
        (["plan", "minilmm"], ["NB0201", "minilm"]),
        (["plan", "nowhere.py:make"], ["NB0201", "nowhere.py"]),
        (["plan", "model.py:mke"], ["NB0201", "make"]),
        (["plan", "model.py:lonely"], ["NB0202", "does not return a module and its inputs"]),
        (["plan", "model.py:picks"], ["NB0205", "model.py:7"]),
        (["run", "model.py:lookup", "--policy", "cpu-only"], ["NB0301", "10"]),
        (["run", "model.py:lookup", "--policy", "pim-only"], ["NB0301", "10"]),
    ],
    ids=lambda value: " ".join(value) if value[0] in ("plan", "run") else value[0],
)
def test_what_the_user_got_wrong_is_named_and_exits_with_1(folder, capsys, words, parts):
    text = refused(capsys, *words)
    assert re.search(rf"^error\[{parts[0]}\]: ", text, flags=re.M), text
    assert parts[1] in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("old", "new", "line_of"),
    [
        ("  mpki: {value: 5.0", "  mpki: {value: -5.0", "  mpki: {value: -5.0"),
        ("  mpki: {value: 5.0", "  mpkj: {value: 5.0", "  mpkj:"),
        (re.compile(r"^  mpki:.*\n", re.M), "", ""),
    ],
    ids=["negative", "unknown", "missing"],
)
def test_a_wrong_machine_file_is_named_with_line_and_column(folder, capsys, old, new, line_of):
    text = (ROOT / "machines" / "nmc-64.yaml").read_text()
    wrong = old.sub(new, text) if isinstance(old, re.Pattern) else text.replace(old, new)
    assert wrong != text
    Path("mine.yaml").write_text(wrong)
    # A key that is not there has no line of its own.
    line = next(i for i, row in enumerate(wrong.splitlines(), 1) if row.startswith(line_of)) if line_of else r"\d+"
    message = refused(capsys, "plan", "model.py:make", "--machine", "mine.yaml")
    assert re.search(rf"mine\.yaml:{line}:\d+", message), message
    assert "mpki" in message


@pytest.mark.parametrize("kind", ["corrupt", "foreign"])
def test_a_database_that_is_none_is_set_aside_and_said_so(folder, capsys, kind):
    if kind == "corrupt":
        Path("p.sqlite").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 32)
    else:
        connection = sqlite3.connect("p.sqlite")
        connection.execute("CREATE TABLE contacts(name TEXT)")
        connection.commit()
        connection.close()
    before = Path("p.sqlite").read_bytes()
    assert cli.main(["plan", "model.py:make", "--db", "p.sqlite", "--out", "first"]) == 0
    assert "p.sqlite was set aside as p.sqlite.corrupt-1" in capsys.readouterr().err
    assert Path("p.sqlite.corrupt-1").read_bytes() == before
    assert count_profiles("p.sqlite") > 0


def test_an_output_folder_that_cannot_be_made_exits_with_3(folder, capsys):
    # Not even root may write here.
    assert cli.main(["plan", "model.py:make", "--out", "/proc/nearbank-out"]) == 3
    assert "error[NB0601]: the output folder cannot be written\n" in capsys.readouterr().err


def test_two_processes_share_a_database(folder):
    environment = {**os.environ, "PYTHONPATH": str(Path(nearbank.__file__).resolve().parents[1])}
    command = [sys.executable, "-m", "nearbank", "plan", "model.py:make", "--db", "p.sqlite", "--out"]
    both = [
        subprocess.Popen(
            [*command, name], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    messages = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], messages
    assert "set aside" not in "".join(messages)
    report = nearbank.plan("model.py:make", db="p.sqlite").runs[0]["summary"]
    assert report["profiledNests"] == 0
    assert count_profiles("p.sqlite") == report["distinctNests"]


def count_profiles(path) -> int:
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("SELECT count(*) FROM profiles").fetchone()[0]
