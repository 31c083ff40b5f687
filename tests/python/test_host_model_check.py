# SPDX-License-Identifier: Apache-2.0
"""The comparison of modelled and measured host times, on made-up documents."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import host_model_check
from host_model_check import ranks, read_samples, spearman


def make_document(path: Path, times: list[tuple[float, float]]) -> Path:
    nests = [
        {
            "key": f"k{index}",
            "kernel": f"kernel{index}",
            "facts": {"iterations": 10},
            "hostTime": {"value": measured},
            "modelledHostTime": {"value": modelled},
        }
        for index, (measured, modelled) in enumerate(times)
    ]
    nests.append({**nests[0], "modelledHostTime": {"value": 1e9}})  # The same nest again counts once.
    nests.append({**nests[0], "key": "other", "modelledHostTime": None})
    path.write_text(json.dumps({"runs": [{"nests": nests}]}))
    return path


def test_each_distinct_nest_counts_once(tmp_path: Path) -> None:
    samples = read_samples([make_document(tmp_path / "run.json", [(10, 20), (100, 50)])])
    assert [sample.ratio for sample in samples] == [2.0, 0.5]


def test_ranks_share_ties() -> None:
    assert ranks([5.0, 1.0, 5.0, 9.0]) == [2.5, 1.0, 2.5, 4.0]
    assert spearman([1, 2, 3, 4], [10, 100, 1000, 1e4]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)


def test_the_summary_counts_what_is_within_a_factor_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_document(tmp_path / "run.json", [(10, 20), (100, 50), (1000, 3000), (10000, 10000)])
    monkeypatch.setattr(sys, "argv", ["host_model_check.py", str(path)])
    host_model_check.main()
    summary = capsys.readouterr().out.splitlines()[-1]
    assert "4 nests over 3.0 decades" in summary
    assert "modelled/measured 1.32" in summary
    assert "within 2x 75%" in summary
    assert "iteration 1.00" in summary
