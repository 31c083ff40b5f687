# SPDX-License-Identifier: Apache-2.0
"""Tests that the commands of README and guide are ones the command line takes."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import needs_core
from nearbank import cli, cli_machines, cli_run, cli_train, explain, upmem_check, upmem_home, upmem_report

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands():
    found = []
    for page in PAGES:
        if not page.exists():
            continue
        lines = "".join(blocks(page, "")).splitlines()
        found += [(page.name, line) for line in lines if line.startswith("nearbank ")]
        examples = re.findall(r"Example: `(nearbank [^`]*)`", page.read_text(encoding="utf-8"))
        found += [(page.name, line) for line in examples if page.name == "errors.md"]
    return found


@pytest.fixture
def recorded(monkeypatch):
    calls = []
    monkeypatch.setattr(cli_run, "plan_or_run", lambda request: calls.append(request))
    monkeypatch.setattr(cli_train, "train", lambda request: calls.append(request))
    monkeypatch.setattr(cli_run, "print_again", lambda *words: calls.append(words))
    monkeypatch.setattr(explain, "explain", lambda *words: calls.append(words) or "")
    monkeypatch.setattr(cli_machines, "list_text", lambda *words: calls.append(words) or "")
    monkeypatch.setattr(cli_machines, "show_text", lambda *words: calls.append(words) or "")
    monkeypatch.setattr(upmem_home, "folder", lambda: calls.append(()) or ROOT)
    monkeypatch.setattr(upmem_report, "read", lambda path: calls.append(path) or {})
    monkeypatch.setattr(upmem_report, "text", lambda document: "")
    monkeypatch.setattr(upmem_report, "page", lambda document: "")
    monkeypatch.setattr(upmem_check, "run", lambda words: calls.append(words) or ("", 0))
    return calls


def test_commands_of_the_pages_are_found():
    assert len(commands()) > 30


# Each of these is the example of a usage error.
REFUSED = {"nearbank run mlp --polcy two-stage", "nearbank rn mlp", "nearbank run", "nearbank run mlp --format xml"}


@pytest.mark.parametrize(("page", "line"), commands())
def test_the_command_line_takes_the_command(page, line, recorded):
    words = shlex.split(line.split(">")[0], comments=True)
    assert cli.main(words[1:]) == (2 if line in REFUSED else 0)
    assert len(recorded) == (0 if line in REFUSED else 1)


@pytest.mark.parametrize(("verb", "page"), [("run", "command-line.md"), ("train", "sgd.md")])
def test_the_guide_lists_every_option(verb, page):
    text = (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8")
    import typer

    command = typer.main.get_command(cli.app).commands[verb]
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("--")]
    assert len(options) > 12
    assert [name for name in options if f"`{name}" not in text and f"{name} " not in text] == []


@pytest.fixture
def backend():
    """Register the backend where the package is not installed, so that it has no entry point."""
    import torch._dynamo
    from nearbank.backend import nearbank_backend

    if "nearbank" not in torch._dynamo.list_backends(exclude_tags=()):
        torch._dynamo.register_backend(nearbank_backend, name="nearbank")
    yield
    torch._dynamo.reset()


@needs_core
@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_python_snippets_run(page, tmp_path, monkeypatch, capsys, backend):
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(blocks(page, "python")):
        exec(compile(text, f"{page.name}:{number}", "exec"), {"__name__": "snippet"})
