# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: links lead somewhere, every error code is explained, every dependency is listed."""

import re

from repository import ROOT, finish, tracked_files

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r'"(NB\d{4})"')


def broken_links() -> list[str]:
    problems = []
    for path in tracked_files(".md"):
        for target in LINK.findall((ROOT / path).read_text(encoding="utf-8")):
            if "://" not in target and not (ROOT / path.parent / target).exists():
                problems.append(f"{path}: link to {target}, which does not exist")
    return problems


def unexplained_codes() -> list[str]:
    catalogue = ROOT / "docs" / "errors.md"
    explained = catalogue.read_text(encoding="utf-8") if catalogue.exists() else ""
    raised: dict[str, str] = {}
    for path in tracked_files(".cpp", ".py"):
        if path.parts[0] == "tests" or path.name.endswith("Test.cpp"):
            continue
        for code in CODE.findall((ROOT / path).read_text(encoding="utf-8")):
            raised.setdefault(code, str(path))
    return [f"docs/errors.md: {code} of {raised[code]} is missing" for code in sorted(raised) if code not in explained]


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
    finish("documents", broken_links() + unexplained_codes() + unlisted_dependencies())
