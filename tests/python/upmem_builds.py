# SPDX-License-Identifier: Apache-2.0
"""Builds UPMEM programs from source texts and runs them."""

import os
import shutil
import subprocess
from pathlib import Path

from nearbank import upmem_home

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "upmem"
HOST_HEAD = "#include <dpu.h>\n#include <stdio.h>\n#include <string.h>\n"


def environment():
    """Return the environment of `nearbank upmem env`, with an end to endless loops."""
    home = upmem_home.folder()
    return {**os.environ, "PATH": f"{home}/bin:{os.environ['PATH']}", "NEARBANK_TIMEOUT_CYCLES": "200000000"}


def build_example(name, folder, environment, dpus, tasklets):
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("bin"))
    subprocess.run(
        ["make", "-s", f"NR_DPUS={dpus}", f"NR_TASKLETS={tasklets}"], cwd=folder, env=environment, check=True
    )
    return folder


def compile_dpu(folder, environment, source, *options, name="dpu_code"):
    """Compile a source text for DPUs as bin/NAME; return the compiler's outcome."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "task.c").write_text(source)
    return subprocess.run(
        ["dpu-upmem-dpurte-clang", "-O2", "-g", *options, "task.c", "-o", f"bin/{name}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def compile_host(folder, environment, source):
    """Compile a source text for the host as bin/host_code."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "app.c").write_text(HOST_HEAD + source)
    subprocess.run(
        "cc -O1 app.c -o bin/host_code `dpu-pkg-config --cflags --libs dpu`",
        shell=True,
        cwd=folder,
        env=environment,
        check=True,
    )


def run(folder, environment, *arguments, **changes):
    return subprocess.run(
        ["./bin/host_code", *arguments],
        cwd=folder,
        env={**environment, **changes},
        capture_output=True,
        text=True,
        timeout=120,
    )
