# SPDX-License-Identifier: Apache-2.0
"""Tests of the error classes, their text and the catalogue."""

import pickle
import re
from pathlib import Path

import pytest
from nearbank import error_catalog
from nearbank.errors import (
    DeviceError,
    IndexRangeError,
    InternalError,
    NearbankError,
    UsageError,
    UserError,
    from_core,
    make_error,
    nearest,
    unknown_name,
)

ROOT = Path(__file__).resolve().parents[2]
FULL_TEXT = """\
error[NB0203]: operand does not fit in one PIM unit
  where:    model.py:41 -> loop nest @mlp/matmul_1
  expected: at most 67108864 B
  actual:   75497472 B for operand %w
  fix:      tile N to 2730 or less
  more:     nearbank explain NB0203"""


def test_text_has_the_one_shape():
    error = make_error(
        "user",
        "NB0203",
        "operand does not fit in one PIM unit",
        where="model.py:41 -> loop nest @mlp/matmul_1",
        expected="at most 67108864 B",
        actual="75497472 B for operand %w",
        fix="tile N to 2730 or less",
    )
    assert str(error) == FULL_TEXT


def test_empty_parts_are_left_out_and_lines_are_indented():
    error = make_error("user", "NB0102", "machine file cannot be parsed", actual="two\nlines")
    assert str(error) == (
        "error[NB0102]: machine file cannot be parsed\n"
        "  actual:   two\n            lines\n"
        "  more:     nearbank explain NB0102"
    )


@pytest.mark.parametrize(
    ("kind", "error_class", "code"),
    [("user", UserError, 1), ("usage", UsageError, 2), ("device", DeviceError, 3), ("internal", InternalError, 4)],
)
def test_kinds_map_to_classes_and_exit_codes(kind, error_class, code):
    error = make_error(kind, "NB0100", "title")
    assert type(error) is error_class
    assert (error.exit_code, error.kind) == (code, kind)
    assert isinstance(error, NearbankError)


def test_core_errors_map_to_python_classes():
    error = from_core({"kind": "device", "code": "NB0501", "title": "trap in device code", "where": "n3", "fix": ""})
    assert type(error) is DeviceError
    assert str(error) == "error[NB0501]: trap in device code\n  where:    n3\n  more:     nearbank explain NB0501"
    assert isinstance(from_core({}), InternalError)


def test_an_index_out_of_range_is_an_index_error():
    error = from_core({"kind": "user", "code": "NB0301", "title": "index out of range"})
    assert isinstance(error, IndexError)
    assert isinstance(error, UserError)
    assert type(error) is IndexRangeError
    assert str(error).startswith("error[NB0301]: index out of range")


def test_errors_survive_pickling():
    error = make_error("device", "NB0601", "the output folder cannot be written", where="/x")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is DeviceError
    assert str(copy) == str(error)


def test_nearest_ignores_case_and_finds_nothing_when_far():
    assert nearest("NMC-6", ["nmc-32", "nmc-64"]) == "nmc-64"
    assert nearest("resnet", ["nmc-32", "nmc-64"]) == ""


def test_unknown_name_lists_valid_names_and_the_closest():
    error = unknown_name("user", "NB0401", "unknown policy", "two-stge", ["cpu-only", "two-stage"], "--policy two-stge")
    assert str(error) == (
        "error[NB0401]: unknown policy\n"
        "  where:    --policy two-stge\n"
        "  expected: one of: cpu-only, two-stage\n"
        "  actual:   'two-stge'\n"
        "  fix:      did you mean 'two-stage'?\n"
        "  more:     nearbank explain NB0401"
    )


def test_the_documentation_repeats_the_catalogue():
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == error_catalog.catalog_text()


def _titles_in_sources():
    """Find (code, title, file) wherever an error is made: `"NB0101", "title"` or code and title of a report."""
    found = []
    for folder in ("python", "runtime", "compiler", "sim", "sgd", "upmem"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".cpp", ".h") and "Test" not in path.name:
                text = re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8"))
                pattern = r'"(NB\d{4})"[,;]\s*(?:\.title = |report\.title = )?"([^"\n]*)"'
                found += [(code, title, path.name) for code, title in re.findall(pattern, text)]
    return found


def test_every_code_of_the_sources_is_in_the_catalogue_with_its_title():
    found = _titles_in_sources()
    assert len(found) > 40
    titles = {code: text.splitlines()[0].partition(": ")[2] for code, text in error_catalog.entries().items()}
    assert [(code, title, name) for code, title, name in found if titles.get(code) != title] == []


def test_every_code_of_the_catalogue_is_in_the_sources():
    used = {code for code, _, _ in _titles_in_sources()} | {"NB0005"}
    assert sorted(set(error_catalog.entries()) - used) == []


@pytest.mark.parametrize("code", sorted(error_catalog.entries()))
def test_entries_name_kind_exit_code_and_example(code):
    text = error_catalog.entry(code)
    assert text.startswith(f"{code}: ")
    assert re.search(r"^(User|Usage|Device|Internal), exit code [1-4][.;]", text, re.MULTILINE)
    assert "Example:" in text


def test_an_unknown_code_offers_the_closest():
    with pytest.raises(UserError, match="NB0005") as caught:
        error_catalog.entry("NB0199")
    assert "did you mean" in str(caught.value)
