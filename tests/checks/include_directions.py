# SPDX-License-Identifier: Apache-2.0
"""Prints which top folder includes which, and fails on an include against the direction of dependencies."""

import re
from collections import Counter

from repository import ROOT, finish, tracked_files

# Folder -> the folders whose headers it may include.
ALLOWED = {
    "runtime": {"runtime"},
    "sim": {"sim", "runtime"},
    "compiler": {"compiler", "runtime", "sim"},
    "python": {"python", "compiler", "runtime", "sim", "sgd", "upmem"},
    "sgd": {"sgd", "runtime", "sim"},
    "upmem": {"upmem", "sim", "runtime"},
}
# Profile and placement run without the compiler too.
WITHOUT_LLVM = ("runtime/", "sim/", "sgd/", "upmem/", "compiler/profile/", "compiler/placement/")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def check() -> list[str]:
    edges: Counter[tuple[str, str]] = Counter()
    problems = []
    for path in tracked_files(".cpp", ".h"):
        folder = path.parts[0]
        if folder not in ALLOWED:
            continue
        for header in INCLUDE.findall((ROOT / path).read_text(encoding="utf-8")):
            target = header.split("/")[0]
            if target in ("mlir", "mlir-c", "llvm", "llvm-c", "lld"):
                edges[folder, "llvm"] += 1
                if str(path).startswith(WITHOUT_LLVM):
                    problems.append(f"{path} includes {header}: only the compiler may use LLVM")
            elif target in ALLOWED:
                edges[folder, target] += 1
                if target not in ALLOWED[folder]:
                    problems.append(f"{path} includes {header}: {folder} may include {sorted(ALLOWED[folder])}")
    for (source, target), count in sorted(edges.items()):
        if source != target:
            print(f"{source} -> {target}: {count} includes")
    return problems


if __name__ == "__main__":
    finish("include-directions", check())
