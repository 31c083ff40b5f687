# SPDX-License-Identifier: Apache-2.0
"""Compiles the training kernel for simulated DPUs and keeps the programs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from nearbank import upmem_home
from nearbank.errors import NearbankError, make_error
from nearbank.report_files import unwritable
from nearbank.settings import home_folder

#: What each word in the name of a variant defines.
_DEFINITIONS = {
    "lr": (),
    "svm": ("SGD_HINGE=1",),
    "dense": (),
    "onehot": ("SGD_SPARSE=1",),
    "values": ("SGD_SPARSE=2",),
    "q31": (),
    "f32": ("SGD_F32=1",),
    "pimopt": ("SGD_PIMOPT=1",),
}


def source_folder() -> Path:
    """Find the kernel's source.

    Returns
    -------
    Path
        ``sgd_device`` of the installed package, else ``sgd/device`` of the source tree.
    """
    package = Path(__file__).resolve().parent
    installed = package / "sgd_device"
    return installed if installed.is_dir() else package.parent.parent / "sgd" / "device"


def _failure(actual: str) -> NearbankError:
    return make_error(
        "device",
        "NB0710",
        "the training kernel cannot be compiled",
        expected="dpu-upmem-dpurte-clang with clang 22, lld, libgcc and picolibc for RISC-V",
        actual=actual,
        fix="run setup, or compute without simulated DPUs: --simulate twin --times modelled",
    )


def compiled(variant: str, tasklets: int) -> Path:
    """Give the program of a variant of the kernel; compiled when it is asked for first.

    Parameters
    ----------
    variant : str
        For example ``"lr-dense-q31"``; `nearbank._sgd.kernel_variant` names it.
    tasklets : int
        1 to 24.

    Returns
    -------
    Path
        The program, in the folder of caches.

    Raises
    ------
    DeviceError
        NB0601 or NB0602 when the folder cannot be written, NB0809 without the UPMEM tools, NB0710 when they fail.
    """
    source = source_folder()
    home = upmem_home.folder()
    flags = ["-O2", *(f"-D{word}" for part in variant.split("-") for word in _DEFINITIONS[part])]
    flags.append(f"-DNR_TASKLETS={tasklets}")
    digest = hashlib.sha256(" ".join(flags).encode())
    runtime = [file for file in sorted((home / "share" / "upmem" / "device").rglob("*")) if file.is_file()]
    for file in [*sorted(source.glob("*.[ch]")), *runtime, home / "bin" / "dpu-upmem-dpurte-clang"]:
        digest.update(file.read_bytes())
    folder = Path(home_folder()) / "kernels"
    program = folder / f"{variant}-{tasklets}-{digest.hexdigest()[:16]}"
    if program.exists():
        return program
    beside = program.with_name(f".{program.name}.{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        command = [str(home / "bin" / "dpu-upmem-dpurte-clang"), *flags, str(source / "train.c"), "-o", str(beside)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise _failure(result.stderr.strip() or f"exit code {result.returncode}")
        os.replace(beside, program)
    except OSError as cause:
        raise unwritable(folder, cause) from cause
    return program


def simulation(settings_text: str, rows: Any, machine: Any, engine: str):
    """Load the kernel of a job for an engine of simulated DPUs.

    Parameters
    ----------
    settings_text : str
        Settings of the job as JSON.
    rows : nearbank._sgd.Rows
        Its rows.
    machine : nearbank._sgd.DpuMachine
        Its machine.
    engine : {"twin", "exact", "fast"}
        The twin's samples are taken on ``exact``.

    Returns
    -------
    nearbank._sgd.DpuSimulation
        For `nearbank._sgd.Trainer`.
    """
    from nearbank import _sgd

    variant = _sgd.kernel_variant(settings_text, rows)
    program = compiled(variant, json.loads(settings_text)["tasklets"])
    translator = upmem_home.folder() / "lib" / "libnearbank_translate.so" if engine == "fast" else ""
    return _sgd.DpuSimulation.load(str(program), machine, str(translator))
