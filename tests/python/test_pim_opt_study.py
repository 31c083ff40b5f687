# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/pim_opt: what PIM-Opt found on hardware holds in its times, as inequalities."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("nearbank._sgd")

STUDY = Path(__file__).parents[2] / "bench" / "pim_opt" / "study.py"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDY.parent))
    spec = importlib.util.spec_from_file_location("pim_opt_study", STUDY)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path.remove(str(STUDY.parent))
    return module


@pytest.fixture(scope="module")
def cells(study):
    """Strong scaling of YFCC from 256 to 2,048 DPUs."""
    found = {}
    for (dataset, algorithm, model), (_, _, _, batches) in study.PUBLISHED.items():
        if dataset == "yfcc":
            for dpus, scaling in ((256, "weak"), (2048, "strong")):
                cell = study.Cell(dataset, algorithm, model, dpus, scaling, batches[0])
                found[algorithm, model, dpus] = study.time_cell(cell)
    return found


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_admm_communicates_least_and_ga_sgd_most(cells, model):
    # At 2,048 DPUs, where the paper compares them; at 256 GA-SGD's batch of 8,192 makes fewer rounds than MA-SGD.
    admm, ma, ga = (cells[algorithm, model, 2048]["communicationShare"] for algorithm in ("admm", "ma-sgd", "ga-sgd"))
    assert admm < ma < ga


@pytest.mark.parametrize("model", ["lr", "svm"])
@pytest.mark.parametrize("algorithm", ["ma-sgd", "ga-sgd"])
def test_communication_grows_with_the_number_of_dpus(cells, algorithm, model):
    few, many = (cells[algorithm, model, dpus]["communicationShare"] for dpus in (256, 2048))
    assert many > few


@pytest.mark.parametrize("algorithm", ["ma-sgd", "ga-sgd", "admm"])
def test_an_svm_computes_less_than_logistic_regression(cells, algorithm):
    seconds = [cells[algorithm, model, 256]["secondsByKind"]["dpuCompute"] for model in ("svm", "lr")]
    assert seconds[0] < seconds[1]


def test_closed_forms_of_dpu_work_come_close_to_simulation(cells):
    # docs/model.md, TM-3 and TM-4 against TM-7.
    ratios = [cell["modelledOverSimulatedDpu"] for cell in cells.values()]
    assert max(ratios) < 1.1 and min(ratios) > 0.9


def test_bytes_are_those_of_the_paper(cells):
    # docs/model.md, TR-4 and TR-5: 416 averages of two models an epoch against three models.
    assert cells["ma-sgd", "lr", 256]["bytesPerEpoch"] == 416 * 2 * 16384 * 256
    assert cells["admm", "lr", 256]["bytesPerEpoch"] == 3 * 16384 * 256


def test_cells_are_kept_and_not_run_twice(study, tmp_path, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(study, "time_cell", lambda cell: calls.append(cell) or {"cell": cell.name})
    chosen = study.time_cells()[:2]
    study.run(chosen, tmp_path)
    study.run(chosen, tmp_path)
    assert len(calls) == 2
    assert [json.loads((tmp_path / f"{cell.name}.json").read_text())["cell"] for cell in chosen] == [
        c.name for c in chosen
    ]
    assert not list(tmp_path.glob("*.part"))


def test_the_report_has_bounds_of_the_papers_machines(study, tmp_path, cells):
    cell = study.Cell("yfcc", "admm", "svm", 2048, "weak", 8)
    timed = {"cell": cell.name, "seconds": 60.0, "communicationShare": 0.0, "bytesPerEpoch": 1}
    timed["secondsByKind"] = dict.fromkeys(cells["admm", "svm", 2048]["secondsByKind"], 1.0)
    (tmp_path / f"{cell.name}.json").write_text(json.dumps(timed))
    row = next(line for line in study.report(tmp_path).splitlines() if line.startswith("| yfcc, admm, svm"))
    _, _, pim, cpu, _, gpu, faster, _ = (part.strip() for part in row.split("|"))
    assert float(pim) == 60
    # 6,815,744 rows of 16 KB: 111.7 GB at 409.6 GB/s and 6,656 steps of 12.9 us; a GPU of 80 GB reads them over PCIe.
    assert float(cpu) == pytest.approx(10 * (111.669 / 409.6 + 6656 * 12.9e-6), rel=0.01)
    assert float(gpu) == pytest.approx(10 * (111.669 / 31.5 + 6656 * 0.9e-6), rel=0.01)
    assert faster == f"{float(gpu) / 60:.2g}x"


def test_links_between_dpus_spare_the_host(study, monkeypatch):
    monkeypatch.syspath_prepend(str(STUDY.parent))
    monkeypatch.setitem(sys.modules, "study", study)
    import links

    for dataset in links.SHAPES:
        found = {name: links.round_of(dataset, way) for name, way in links.WAYS.items()}
        host = found["host (UPMEM as it is)"]
        for name in ("ring all-reduce", "gossip with two neighbours", "switches add up"):
            assert found[name]["synchronising"] < host["synchronising"] and found[name]["host"] == 0
        chip, rank = found["DPUs of a chip share memory"], found["DPUs of a rank share memory"]
        assert rank["host"] * 8 == chip["host"] and chip["host"] < host["host"]
        # What a round works hides what the host does meanwhile, but for one rank's own transfers.
        left = found["host, asynchronous (staleness 1)"]["synchronising"]
        assert host["synchronising"] - host["working"] - 1e-3 < left < host["synchronising"]
    assert links.table().count("\n") == len(links.WAYS) + 3


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_accuracy_falls_with_the_number_of_dpus(study, model):
    # Strong scaling of MA-SGD with an eighth of YFCC's rows and DPUs and 256 features: 416 averages an epoch, or 52.
    rows = study.ROWS["yfcc"] // 8
    test = study.read_data(f"yfcc-like:20000,features=256,firstRow={1 << 32}")
    accuracies = []
    for dpus in (256 // 8, 2048 // 8):
        options = study.Cell("yfcc", "ma-sgd", model, dpus, "strong", 8, 1).options(dpus)
        job = study.start_job(study.read_data(f"yfcc-like:{rows},features=256"), options)
        study.run_epochs(job, 1, test_rows=test.rows(job.settings))
        accuracies.append(job.history[-1]["testAccuracy"])
    assert accuracies[1] < accuracies[0] - 0.05
