# SPDX-License-Identifier: Apache-2.0
"""The engine fast against the engine exact: same results, cycles within 2 %."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from nearbank import upmem_home

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "upmem"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "Makefile").exists())
#: What docs/model.md promises of the cycles of a launch.
CYCLES_REL = 0.02


@pytest.fixture(scope="module")
def environment():
    home = upmem_home.folder()
    if not (home / "lib" / "libnearbank_translate.so").exists():
        pytest.skip("built without the compiler: no translator")
    return {**os.environ, "PATH": f"{home}/bin:{os.environ['PATH']}", "NEARBANK_TIMEOUT_CYCLES": "200000000"}


def run(folder, environment, engine, *arguments, **changes):
    return subprocess.run(
        ["./bin/host_code", *arguments],
        cwd=folder,
        env={**environment, "NEARBANK_UPMEM": engine, "NEARBANK_STATS": f"{engine}.json", **changes},
        capture_output=True,
        text=True,
        timeout=120,
    )


def launches(folder, engine):
    events = json.loads((folder / f"{engine}.json").read_text())["events"]
    return [event for event in events if event["what"] == "launch"]


def compare_launches(folder):
    exact, fast = launches(folder, "exact"), launches(folder, "fast")
    assert [e["maxCycles"] for e in fast] == pytest.approx([e["maxCycles"] for e in exact], rel=CYCLES_REL)
    for ours, theirs in zip(fast, exact, strict=True):
        for key in ("dmaReads", "dmaReadBytes", "dmaWrites", "dmaWriteBytes"):
            assert ours[key] == theirs[key]
        assert ours["slots"] == sum(ours["slotsByKind"].values())


@pytest.mark.parametrize("tasklets", [1, 8, 11, 16, 24])
@pytest.mark.parametrize("name", NAMES)
def test_examples_take_the_same_time(name, tasklets, tmp_path, environment):
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("bin"))
    subprocess.run(["make", "-s", "NR_DPUS=2", f"NR_TASKLETS={tasklets}"], cwd=folder, env=environment, check=True)
    for engine in ("exact", "fast"):
        result = run(folder, environment, engine)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "OK" in result.stdout
    compare_launches(folder)
