# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line as a process: help, start-up time, interrupts, pipes, progress."""

import io
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import nearbank
from nearbank import cli
from nearbank.cli_progress import Progress

PACKAGE_ROOT = Path(nearbank.__file__).resolve().parents[1]


def shell(*words, **options):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), "NO_COLOR": "1", **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "nearbank", *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        **options,
    )


def test_every_help_opens_with_an_example():
    for words in ([], ["plan"], ["run"], ["explain"], ["report"], ["machines"], ["machines", "show"], ["version"]):
        done = shell(*words, "--help")
        assert done.returncode == 0
        assert done.stderr == ""
        body = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        assert body[0].startswith("Usage: nearbank")
        assert body[1].startswith("Example: nearbank"), words


def test_no_words_print_the_help(capsys):
    assert cli.main([]) == 0
    assert "Usage: nearbank" in capsys.readouterr().out


def test_help_imports_neither_torch_nor_rich_and_is_quick():
    probe = (
        "import sys; from nearbank.cli import main; code = main(['--help']);"
        "print(sorted({'torch', 'rich', 'jinja2', 'yaml', 'numpy'} & set(sys.modules)), code)"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", probe], capture_output=True, text=True, env=environment, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert done.stdout.splitlines()[-1] == "[] 0"
    # Processor time, the least of five: the wall clock would count whatever else keeps the cores busy.
    assert min(times) <= 0.5


def test_an_interrupted_process_ends_with_130(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(
        "import sys, time, types\n"
        "import nearbank\n"
        "made = types.ModuleType('nearbank.session')\n"
        "def run(spec, **options):\n"
        "    print('ready', file=sys.stderr, flush=True)\n"
        "    time.sleep(30)\n"
        "made.run = made.plan = run\n"
        "sys.modules['nearbank.session'] = nearbank.session = made\n"
        "from nearbank.cli import main\n"
        "sys.exit(main(['run', 'mlp']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    process = subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=30)
    assert process.returncode == 130
    assert text == "interrupted; nothing more was written\n"


def test_a_closed_pipe_is_quiet():
    command = f"{sys.executable} -m nearbank explain NB0101 | true"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, timeout=60)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_tells_the_time_that_is_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        with Progress(stream) as progress:
            progress("simulate", 0, 2)
            progress.left(95)
            progress.note("simulating 2 nests will take about 2 min")
            progress("simulate", 1, 2)
    assert "simulating 2 nests will take about 2 min" in plain.getvalue().splitlines()[1]
    assert "simulating 2 nests will take about 2 min" in terminal.getvalue()
    assert "2 min left" in terminal.getvalue()


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        with Progress(stream) as progress:
            for done in range(3):
                progress("profile", done, 2)
            progress("execute")
    lines = plain.getvalue().splitlines()
    assert [line.split("] ")[1] for line in lines] == ["profile (2)", "execute"]
    assert "profile" in terminal.getvalue()
    assert "\x1b[3" not in terminal.getvalue()
