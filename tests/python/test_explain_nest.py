# SPDX-License-Identifier: Apache-2.0
"""Tests of `nearbank explain`."""

import pytest
from nearbank import cli
from nearbank.errors import UserError
from nearbank.explain import equation_lines, explain, nest_text
from nearbank.report import Report
from run_document_sample import make_document


@pytest.fixture
def folder(tmp_path):
    return Report(make_document()).save(tmp_path / "out")


def test_a_nest_shows_facts_equations_margin_and_flip(folder):
    text = explain(str(folder), "n1")
    for part in (
        "n1  matmul_96x384x384_f32  (minilm on nmc-64, policy two-stage)",
        "source:      modeling_bert.py:41  aten.mm  encoder.layer.0",
        "decision:    Placed: runs on PIM",
        "trip counts: 96 x 384 x 384 (parallel, parallel, reduction)",
        "operations:  28.3 M (MLIR, counted)",
        "PIM:         536 us (simulated)",
        "PIM by PL-3: 447 us (predicted)",
        "PL-1  operations >= threshold: holds",
        "operations = 28.3 M  [MLIR]",
        "value 28.3 M, threshold 100 k, margin +28.2 M",
        "would flip it: mpki below 10 (is 20.93)",
    ):
        assert part in text, part
    assert " / " not in text


def test_an_equation_prints_its_numbers():
    equation = {
        "id": "PL-2",
        "text": "lfmr >= threshold",
        "inputs": [
            {"name": "lfmr", "value": 0.31, "unit": "ratio", "provenance": "host profile"},
            {"name": "mpki", "value": None, "unit": "", "provenance": "host profile"},
        ],
        "value": 0.31,
        "threshold": 0.56,
        "passed": False,
        "margin": -0.25,
    }
    assert equation_lines(equation) == [
        "PL-2  lfmr >= threshold: does not hold",
        "      lfmr = 0.31  [host profile]",
        "      mpki = -  [host profile]",
        "      value 0.31, threshold 0.56, margin -0.25",
    ]


def test_a_hoisted_nest_has_no_equations(folder):
    text = explain(str(folder), "n68")
    assert "NotCandidate: runs on the host once, outside the timed program" in text
    assert "none decided this nest" in text


def test_a_nest_without_a_profile_is_explained():
    run = make_document(layers=1)["runs"][0]
    nest = {**run["nests"][0], "profile": None, "source": None, "torchOp": None, "modulePath": None, "hostTime": None}
    text = nest_text(run, nest)
    assert "source:      -" in text
    assert "profile:     none" in text


def test_without_a_nest_every_decision_is_listed(folder):
    lines = explain(str(folder)).splitlines()
    assert len(lines) == 3 + 69
    assert lines[3].split() == ["n0", "host", "KeptOnHost", "gather_96x384_f32:", "too", "little", "work"]


def test_an_unknown_nest_offers_the_closest(folder):
    with pytest.raises(UserError) as caught:
        explain(str(folder), "n99")
    lines = str(caught.value).splitlines()
    assert lines[0] == "error[NB0607]: no nest of this id in the report"
    assert lines[1] == f"  where:    {folder}"
    assert lines[2].endswith("… (69 in all)")
    assert lines[4] == "  fix:      did you mean 'n9'?"


def test_codes_are_explained_in_any_case(capsys):
    assert cli.main(["explain", "nb0101"]) == 0
    assert capsys.readouterr().out.startswith("NB0101: unknown machine\n")
    assert cli.main(["explain", "NB7777"]) == 1
    assert "error[NB0005]: unknown error code" in capsys.readouterr().err


def test_the_command_explains_a_nest(folder, capsys):
    assert cli.main(["explain", str(folder), "n1"]) == 0
    assert "would flip it" in capsys.readouterr().out
    assert cli.main(["explain", str(folder), "x"]) == 1
    assert cli.main(["explain", "nowhere", "n1"]) == 1
