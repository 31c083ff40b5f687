# SPDX-License-Identifier: Apache-2.0
"""Checks what every source file must have: a licence line, a reasonable length, a telling name."""

import re

from repository import ROOT, finish, tracked_files

MAX_LINES = 500
# path -> why it is longer.
LONGER: dict[str, str] = {}
VAGUE_NAME = re.compile(r"(?i)(utils?|helpers?|common|misc|manager)\.(cpp|h|py)$")


def check() -> list[str]:
    problems = []
    for path in tracked_files(".cpp", ".h", ".c", ".py", ".sh", ".td", ".mlir"):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        if lines and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
            problems.append(f"{path}: no SPDX line at the top")
        if len(lines) > MAX_LINES and str(path) not in LONGER:
            problems.append(f"{path}: {len(lines)} lines, more than {MAX_LINES}; split it or give a reason")
        if VAGUE_NAME.search(path.name):
            problems.append(f"{path}: the name does not say what it is")
    return problems


if __name__ == "__main__":
    finish("source-files", check())
