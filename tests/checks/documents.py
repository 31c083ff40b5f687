# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: links lead somewhere, every dependency is listed."""

import re

from repository import ROOT, finish, tracked_files

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken_links() -> list[str]:
    problems = []
    for path in tracked_files(".md"):
        for target in LINK.findall((ROOT / path).read_text(encoding="utf-8")):
            if "://" not in target and not (ROOT / path.parent / target).exists():
                problems.append(f"{path}: link to {target}, which does not exist")
    return problems


def unlisted_dependencies() -> list[str]:
    listed = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    names = []
    for file in ("debian-packages.txt", "requirements.txt", "requirements-no-deps.txt"):
        for line in (ROOT / "setup" / file).read_text(encoding="utf-8").splitlines():
            name = re.split(r"[=<>\s#]", line, maxsplit=1)[0]
            if name:
                names.append((file, name))
    return [f"docs/dependencies.md: {name} of setup/{file} is missing" for file, name in names if name not in listed]


if __name__ == "__main__":
    finish("documents", broken_links() + unlisted_dependencies())
