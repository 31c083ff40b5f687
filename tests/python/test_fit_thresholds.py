# SPDX-License-Identifier: Apache-2.0
"""The fit of placement thresholds finds a rule that is known, on made-up nests."""

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import fit_thresholds
from fit_thresholds import Nest, fit, is_placed, misplaced, read_nests, rounded


def make_nests(model: str, shift: float) -> list[Nest]:
    """Nests that are faster on PIM exactly when work >= 1e5 and MPKI >= 10."""
    nests = []
    for work in (1e3, 2e4, 9e4, 3e5, 4e6):
        for mpki in (0.1, 2.0, 8.0, 20.0, 50.0):
            values = (work * shift, mpki * shift, 1.0, 1.0)
            is_faster = values[0] >= 1e5 and values[1] >= 10
            nests.append(
                Nest(model, f"{model}{work}/{mpki}", values, host_ns=work, pim_ns=work * (0.5 if is_faster else 2))
            )
    return nests


def test_known_rule_is_found() -> None:
    nests = make_nests("a", 1.0) + make_nests("b", 1.05)
    rule = fit(nests)
    assert misplaced(nests, rule) == 0
    assert 9e4 * 1.05 < rule["workOperations"] < 3e5
    assert 8.0 * 1.05 < rule["mpki"] < 20
    assert misplaced(make_nests("c", 1.02), rule) == 0


def test_rule_is_the_policy_of_the_model_document() -> None:
    rule = {"workOperations": 100.0, "mpki": 5.0, "lfmr": 0.5, "intensity": 8.0}
    assert is_placed(Nest("a", "k", (100.0, 5.0, 0.5, 8.0), 1, 1), rule)
    for values in ((99.0, 5.0, 0.5, 8.0), (100.0, 4.9, 0.5, 8.0), (100.0, 5.0, 0.4, 8.0), (100.0, 5.0, 0.5, 8.1)):
        assert not is_placed(Nest("a", "k", values, 1, 1), rule)


def make_document(path: Path, **changes: object) -> Path:
    quantity = {"unit": "ns", "kind": "simulated"}
    nest = {
        "hoisted": False,
        "key": "k",
        "modelledHostTime": {"value": 10.0, **quantity},
        "pimTime": {"value": 20.0, **quantity},
        "profile": {"mpki": {"value": 3.0}, "lfmr": {"value": 0.9}, "dramBytes": {"value": 8.0}},
        "facts": {"parallelExtent": 64, "operations": {"total": 16.0, "loads": 2.0, "stores": 1.0}},
        **changes,
    }
    path.write_text(json.dumps({"runs": [{"spec": "mlp", "machine": "nmc-64", "nests": [nest]}]}))
    return path


def test_nests_are_read_with_launch_and_return(tmp_path: Path) -> None:
    (nest,) = read_nests(make_document(tmp_path / "run.json"), launch_ns=4000)
    assert nest == Nest("mlp", "k", (19.0, 3.0, 0.9, 2.0), 10.0, 4020.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"hoisted": True},
        {"pimTime": None},
        {"modelledHostTime": None},
        {"profile": None},
        {"facts": {"parallelExtent": 1}},
    ],
)
def test_nests_that_teach_nothing_are_left_out(tmp_path: Path, changes: dict[str, object]) -> None:
    assert read_nests(make_document(tmp_path / "run.json", **changes), 4000) == []


def test_one_policy_of_a_machine_counts(tmp_path: Path) -> None:
    path = make_document(tmp_path / "run.json")
    document = json.loads(path.read_text())
    document["runs"] *= 2
    path.write_text(json.dumps(document))
    assert len(read_nests(path, 4000)) == 1


def test_output_is_a_placement_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fit_thresholds.py", str(make_document(tmp_path / "run.json"))])
    fit_thresholds.main()
    output = capsys.readouterr().out
    assert "placement:\n  workOperations: {value: " in output
    assert (
        'unit: "misses/kilo-instruction", source: "bench/fit_thresholds.py on 1 nests of 1 models and operators"'
        in output
    )


def test_nests_of_the_training_set_are_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = make_document(tmp_path / "known.json")
    other = make_document(tmp_path / "other.json", key="other", modelledHostTime={"value": 1e6})
    monkeypatch.setattr(sys, "argv", ["fit_thresholds.py", str(known), "--test", str(known), str(other)])
    fit_thresholds.main()
    assert "# test: 1 nests, 1 faster on PIM" in capsys.readouterr().out


def test_open_intensity_becomes_a_number_that_a_machine_file_takes() -> None:
    assert rounded(math.inf) == 1e9
    assert rounded(123456.0) == 123000.0
    assert rounded(0.0) == 0.0
