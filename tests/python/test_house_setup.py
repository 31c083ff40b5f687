# SPDX-License-Identifier: Apache-2.0
"""The set-up scripts and the repository checks, run as a new user and as `make check` run them."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def shared_folder():
    """A folder that other users can read; pytest's own cannot be."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def run_as_user(command, folder, installed):
    """Run a set-up script without root, on a machine whose dpkg knows the packages in `installed` only."""
    fake = folder / "bin"
    fake.mkdir()
    (fake / "installed").write_text("\n".join(installed) + "\n")
    query = fake / "dpkg-query"
    query.write_text('#!/bin/bash\ngrep -qx "${@: -1}" "$(dirname "$0")/installed" && echo "ii "\n')
    query.chmod(0o755)
    script = folder / "setup"
    script.mkdir()
    for name in ("system-packages.sh", "debian-packages.txt"):
        (script / name).write_bytes((ROOT / "setup" / name).read_bytes())
        (script / name).chmod(0o755)
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*prefix, "bash", str(script / command)],
        env={"PATH": f"{fake}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        cwd="/",
    )


def wanted_packages():
    lines = (ROOT / "setup" / "debian-packages.txt").read_text().splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def test_missing_packages_are_named_without_root(shared_folder):
    installed = [name for name in wanted_packages() if name not in ("libmlir-22-dev", "chromium")]
    result = run_as_user("system-packages.sh", shared_folder, installed)
    assert result.returncode == 3
    assert result.stderr == (
        "error: Debian packages are missing, and only root can install them\n"
        "  actual:   missing libmlir-22-dev chromium\n"
        "  fix:      sudo apt-get install libmlir-22-dev chromium\n"
    )


def test_goes_on_without_root_when_nothing_is_missing(shared_folder):
    result = run_as_user("system-packages.sh", shared_folder, wanted_packages())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("check", ["source_files", "include_directions", "documents"])
def test_repository_checks_pass(check):
    result = subprocess.run([sys.executable, ROOT / f"tests/checks/{check}.py"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_include_check_finds_an_include_against_the_direction(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "checks"))
    import include_directions

    wrong = {"runtime/A.cpp": '#include "sim/B.h"\n', "sim/B.h": "#include <llvm/IR/Module.h>\n"}
    for name, text in wrong.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(include_directions, "ROOT", tmp_path)
    monkeypatch.setattr(include_directions, "tracked_files", lambda *_: [Path(name) for name in wrong])
    problems = include_directions.check()
    assert problems == [
        "runtime/A.cpp includes sim/B.h: runtime may include ['runtime']",
        "sim/B.h includes llvm/IR/Module.h: only the compiler may use LLVM",
    ]
