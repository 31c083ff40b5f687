# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the programs of a pim-ml checkout under Nearbank and prints a table of what passed.

python bench/upmem_pim_ml.py PATH/TO/pim-ml --dpus 1,4 --tasklets 8,12
The checkout is copied. Programs that read a SUSY file get a generated one: only the path of that file is changed. One
program lacks an #endif, with which no compiler takes it; it gets that one line, and the table says so.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import upmem_checkout
from upmem_checkout import Outcome

ROWS, COLUMNS = 1024, 18


def generate(folder: Path) -> None:
    """Point the program's file names to generated rows."""
    source = folder / "host" / "app.c"
    text = source.read_text()
    choice = random.Random(3)
    for number, path in enumerate(sorted(set(re.findall(r'fopen\("([^"]+\.csv)"', text)))):
        file = folder / f"generated{number}.csv"
        whole = "int" in Path(path).name
        rows = []
        for _ in range(ROWS):
            values = [choice.uniform(-1, 1) for _ in range(COLUMNS)]
            label = choice.randrange(2)
            cells = [round(v * 100) if whole else round(v, 6) for v in values]
            first = [label, cells[0]] if "Logistic" in str(folder) else [cells[0], label]
            rows.append(",".join(map(str, [*first, *cells[1:]])))
        file.write_text("\n".join(rows) + "\n")
        text = text.replace(path, str(file))
    source.write_text(text)


def repair(folder: Path) -> bool:
    """Close the inner condition of a header that has two #else in a row; return whether there was one."""
    header = folder / "support" / "common.h"
    text, count = re.subn(
        r"(#if \(BL == 0\)\n.*\n#else\n(?:#define .*\n)+)(#else\n)", r"\1#endif\n\2", header.read_text()
    )
    header.write_text(text)
    return count > 0


def run(folder: Path, dpus: int, tasklets: int, seconds: int, was_repaired: bool) -> Outcome:
    """Build and run one program."""
    reads = "SUSY" in folder.name
    variables = [f"NR_DPUS={dpus}", f"NR_TASKLETS={tasklets}"]
    if reads and "Logistic" in str(folder):
        variables.append("BL=0")  # Blocks of whole rows: with 18 bytes a row, others begin at unaligned addresses.
    if failure := upmem_checkout.build(folder, *variables):
        return failure
    arguments = ["-i", "4", "-m", str(ROWS), "-n", str(COLUMNS if reads else 16)]
    if "'w'" in (folder / "support" / "params.h").read_text():
        arguments += ["-w", "0", "-e", "1"]
    found = upmem_checkout.run(folder, ["./bin/host_code", *arguments], seconds)
    if "[OK]" in found.text:
        found.state, found.why = "passed", "with the #endif that its common.h lacks" if was_repaired else ""
    elif "[ERROR]" in found.text and re.search(
        r"//\s*(GD_host|trainning_host|training_host|train_host)", (folder / "host" / "app.c").read_text()
    ):
        found.state, found.why = "ran", "its reference computation is commented out"
    return found


def main() -> int:
    chosen = upmem_checkout.options(__doc__.splitlines()[0], "4", "12")
    with upmem_checkout.copied(chosen.checkout) as root:
        folders = [makefile.parent for makefile in sorted(root.glob("*/*/*/Makefile"))]
        names = [str(folder.relative_to(root)) for folder in folders if (folder / "dpu").exists()]
        for name in names:
            generate(root / name)
        repaired = {name for name in names if repair(root / name)}
        return upmem_checkout.table(
            names,
            chosen,
            lambda name, dpus, tasklets: run(root / name, dpus, tasklets, chosen.timeout, name in repaired),
        )


if __name__ == "__main__":
    sys.exit(main())
