# SPDX-License-Identifier: Apache-2.0
"""Where the commands, headers and libraries for UPMEM programs lie."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from nearbank.errors import make_error


def folder() -> Path:
    """Find the folder that holds ``bin``, ``lib``, ``include`` and ``share``.

    Returns
    -------
    Path
        NEARBANK_UPMEM_HOME when set, else ``upmem`` of the installed package, else that of a build tree of this source
        tree.

    Raises
    ------
    DeviceError
        NB0809 when there is none.
    """
    package = Path(__file__).resolve().parent
    candidates = [package / "upmem", *sorted(package.parent.parent.glob("build*/upmem/home"))]
    candidates += sorted(package.parent.parent.glob("build/*/upmem/home"))
    if chosen := os.environ.get("NEARBANK_UPMEM_HOME"):
        candidates = [Path(chosen)]
    for candidate in candidates:
        if (candidate / "bin" / "dpu-pkg-config").exists() and (candidate / "lib").exists():
            return candidate.resolve()
    raise make_error(
        "device",
        "NB0809",
        "the UPMEM tools are not built",
        where=", ".join(map(str, candidates)),
        expected="bin/dpu-upmem-dpurte-clang and lib/libdpu.so",
        fix="pip install nearbank, or build the target upmem_home",
    )


def shell_text(home: Path) -> str:
    """Write the settings for a shell.

    Parameters
    ----------
    home : Path
        What `folder` returned.

    Returns
    -------
    str
        Lines for ``eval``.
    """
    path = shlex.quote(str(home))
    return f'export UPMEM_HOME={path}\nexport PATH={path}/bin:"$PATH"'
