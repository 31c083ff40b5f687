# SPDX-License-Identifier: Apache-2.0
"""Lists the repository's own files and reports what a check finds."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked_files(*suffixes: str) -> list[Path]:
    """Paths relative to the root; outside a git checkout, every file that is not built."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        paths = [Path(line) for line in listing]
    except (OSError, subprocess.CalledProcessError):
        built = {".venv", "build", ".git", "__pycache__"}
        paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if not built & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if (ROOT / path).is_file() and (not suffixes or path.name.endswith(suffixes)))


def finish(name: str, problems: list[str]) -> None:
    """Prints the problems and exits with 1 when there are any."""
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    print(f"{name}: {len(problems)} problems")
    sys.exit(bool(problems))
