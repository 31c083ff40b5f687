# SPDX-License-Identifier: Apache-2.0
"""Tests of the report object, its verdict, its texts and its files."""

import csv
import doctest
import gzip
import io
import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from nearbank import cli_progress, error_catalog, errors, render_units, report_groups, sweep
from nearbank import report as report_module
from nearbank.errors import DeviceError, UserError
from nearbank.render_text import run_text
from nearbank.report import Report, load_report, verdict
from nearbank.report_quantities import DESCRIPTIONS
from run_document_sample import make_document, make_run, quantity

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "run.json",
    "config.resolved.yaml",
    "remarks.opt.yaml",
    "stats.json",
    "runs.csv",
    "nests.csv",
    "trace.json.gz",
    "report.html",
}


def schema():
    return json.loads((ROOT / "docs" / "reference" / "run.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("policy", ["two-stage", "pim-only", "cpu-only"])
@pytest.mark.parametrize("simulate", ["exact", "none"])
def test_documents_follow_the_schema(policy, simulate):
    document = json.loads(Report(make_document(policy=policy, simulate=simulate)).to_json())
    jsonschema.validate(document, schema())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run["nests"][0].update(where="gpu"),
        lambda run: run["summary"]["hostTime"].update(kind="guessed"),
        lambda run: run["summary"].pop("nestsOnPim"),
        lambda run: run["nests"][0].pop("why"),
        lambda run: run["summary"]["hostTime"].pop("unit"),
    ],
)
def test_the_schema_refuses_spoilt_documents(spoil):
    document = make_document()
    spoil(document["runs"][0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_every_summary_quantity_is_described():
    names = set(make_run()["summary"]) - {"verdict", "speedupInterval"}
    assert names == set(DESCRIPTIONS)
    reference = (ROOT / "docs" / "reference" / "quantities.md").read_text(encoding="utf-8")
    for name, description in DESCRIPTIONS.items():
        assert f"`{name}`" in reference
        assert description in reference


def small_run(**summary):
    run = make_run(layers=1)
    run["summary"].update(
        numNests=124,
        nestsOnPim=31,
        pimTime=quantity(4.2e6, "ns", "simulated"),
        hostTimeOfPimNests=quantity(6.0e6, "ns", "measured"),
        crossingTime=quantity(1.3e5, "ns", "modelled"),
        **summary,
    )
    return run


def test_the_verdict_puts_kinds_side_by_side():
    assert verdict(small_run()) == (
        "two-stage places 31 of 124 nests on nmc-64: they take 4.2 ms on PIM (simulated) and 6 ms on this host with "
        "2 threads (measured), with 130 us of crossings (modelled); kinds differ, so no speed-up is claimed."
    )


def test_the_verdict_says_predicted_when_nothing_was_simulated():
    run = small_run(predictedPimTime=quantity(3.9e6, "ns", "predicted"))
    run["summary"]["pimTime"] = None
    assert "3.9 ms on PIM (predicted)" in verdict(run)


def test_the_verdict_of_a_program_without_pim_nests():
    run = make_run(layers=1, policy="cpu-only")
    run["summary"].update(numNests=14, hostTime=quantity(5.0e6, "ns", "measured"))
    assert (
        verdict(run)
        == "cpu-only keeps all 14 nests of minilm on the host: 5 ms on this host with 2 threads (measured)."
    )


def test_a_program_without_nests_is_reported():
    document = make_document(layers=0)
    run = document["runs"][0]
    run.update(nests=[], launches=[], crossings=[], remarks=[])
    for name, value in run["summary"].items():
        run["summary"][name] = "" if name == "verdict" else 0 if isinstance(value, int) else None
    report = Report(document)
    assert report.verdict == "minilm has no parallel loop nest that compiles, so there is nothing to place."
    assert "no parallel loop nests" in report.to_text()
    assert report.to_html()


@pytest.mark.parametrize("simulate", ["exact", "none"])
@pytest.mark.parametrize("policy", ["two-stage", "pim-only"])
def test_no_text_claims_a_ratio_across_kinds(simulate, policy):
    run = make_run(policy=policy, simulate=simulate)
    texts = [verdict(run), run_text(run)]
    for text in texts:
        assert "speedup" not in text
        assert "x faster" not in text
        assert "no speed-up is claimed" in text


def test_missing_verdicts_are_filled_in_and_given_ones_kept():
    document = make_document()
    assert Report(document).verdict.startswith("two-stage places 12 of 69 nests")
    document["runs"][0]["summary"]["verdict"] = "given"
    assert Report(document).verdict == "given"


def test_text_groups_long_tables_and_lists_all_on_demand():
    report = Report(make_document())
    grouped, full = report.to_text(), report.to_text(show_all=True)
    assert grouped.count("matmul_96x1536x384_f32") == 1
    assert "x6" in grouped
    assert full.count("matmul_96x1536x384_f32") == 6
    assert str(report) == grouped
    assert grouped.splitlines()[-1] == report.verdict


@pytest.mark.parametrize("width", [76, 80, 100, 140])
def test_the_table_fits_the_terminal(width):
    lines = Report(make_document()).to_text(width=width).splitlines()
    table = [line for line in lines[2:] if line[:1] == "n" and line[1:2].isdigit()]
    assert len(table) == 14
    assert max(len(line) for line in table) <= width


def test_several_runs_end_with_an_overview():
    document = make_document()
    document["runs"].append(make_run(policy="pim-only", machine="nmc-32"))
    report = Report(document)
    last = report.to_text().splitlines()[-1]
    assert last.split()[:6] == ["minilm", "nmc-32", "pim-only", "68", "of", "69"]
    assert "(simulated)" in last
    assert '<a href="#r1">minilm</a>' in report.to_html()
    assert 'id="overview"' not in Report(make_document()).to_html()


@pytest.mark.parametrize(
    "module", [error_catalog, errors, render_units, report_groups, cli_progress, sweep, report_module]
)
def test_examples_of_docstrings_hold(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_predicted_times_are_marked_in_the_table():
    report = Report(make_document(simulate="none"))
    rows = [line for line in report.to_text().splitlines() if " pim " in line]
    assert rows
    assert all("~" in row for row in rows)


def test_csv_has_a_row_for_each_nest():
    document = make_document()
    rows = list(csv.DictReader(io.StringIO(Report(document).to_csv())))
    nests = document["runs"][0]["nests"]
    assert [row["nest"] for row in rows] == [nest["id"] for nest in nests]
    assert float(rows[1]["hostTimeNs"]) == nests[1]["hostTime"]["value"]
    assert rows[0]["pimTimeNs"] == ""
    assert rows[-1]["hoisted"] == "true"


def test_save_writes_every_file_and_load_reads_it_back(tmp_path):
    report = Report(make_document())
    folder = report.save(tmp_path / "deep" / "out")
    assert {path.name for path in folder.iterdir()} == FILES
    assert load_report(folder).document == report.document
    assert load_report(folder / "run.json").runs == report.runs
    config = yaml.safe_load((folder / "config.resolved.yaml").read_text())
    assert config["runs"][0]["policy"] == "two-stage"
    statistics = json.loads((folder / "stats.json").read_text())
    by_name = {entry["name"]: entry for entry in statistics}
    assert by_name["pimTime"]["kind"] == "simulated"
    assert by_name["pimTime"]["unit"] == "ns"
    assert all(entry["description"] for entry in statistics)


def test_remarks_are_one_yaml_document_for_each_nest(tmp_path):
    report = Report(make_document())
    text = (report.save(tmp_path) / "remarks.opt.yaml").read_text()
    assert text.count("--- !") == len(report.runs[0]["remarks"])
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("!", lambda loader, tag, node: (tag, loader.construct_mapping(node, deep=True)))
    remarks = list(yaml.load_all(text, loader))
    assert {tag for tag, _ in remarks} == {"Passed", "Missed", "Analysis"}
    first = remarks[0][1]
    assert first["Name"] == "KeptOnHost"
    assert first["Function"] == "n0"


def test_the_trace_holds_every_launch_and_crossing(tmp_path):
    report = Report(make_document())
    trace = json.loads(gzip.decompress((report.save(tmp_path) / "trace.json.gz").read_bytes()))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    run = report.runs[0]
    assert len(slices) == len(run["launches"]) + len(run["crossings"])
    assert {event["args"]["kind"] for event in slices} == {"measured", "simulated", "modelled"}
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert any("nmc-64 (simulated)" in name for name in names)
    order = [event["ts"] for event in slices]
    assert order == sorted(order)


def test_files_have_the_same_bytes_for_the_same_document(tmp_path):
    first = Report(make_document()).save(tmp_path / "a")
    second = Report(json.loads(Report(make_document()).to_json())).save(tmp_path / "b")
    for name in FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_folder_that_is_a_file_is_a_device_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(DeviceError) as caught:
        Report(make_document()).save(tmp_path / "taken")
    assert str(caught.value) == (
        "error[NB0601]: the output folder cannot be written\n"
        f"  where:    {tmp_path / 'taken'}\n"
        "  expected: a writable folder\n"
        "  actual:   File exists\n"
        "  fix:      choose another folder with --out\n"
        "  more:     nearbank explain NB0601"
    )


def test_a_missing_report_is_a_user_error(tmp_path):
    with pytest.raises(UserError) as caught:
        load_report(tmp_path / "none")
    assert str(caught.value) == (
        "error[NB0605]: there is no report here\n"
        f"  where:    {tmp_path / 'none' / 'run.json'}\n"
        "  expected: a folder written by nearbank plan or nearbank run\n"
        "  actual:   No such file or directory\n"
        "  fix:      check the folder, or run nearbank run SPEC --out DIR\n"
        "  more:     nearbank explain NB0605"
    )


def test_numbers_that_are_not_finite_become_null(tmp_path):
    document = make_document(layers=1)
    document["runs"][0]["summary"]["maxAbsError"]["value"] = float("inf")
    document["runs"][0]["nests"][0]["why"]["equations"][0]["margin"] = float("nan")
    folder = Report(document).save(tmp_path)
    for name in ("run.json", "stats.json"):
        assert "Infinity" not in (folder / name).read_text()
    jsonschema.validate(json.loads((folder / "run.json").read_text()), schema())
    assert load_report(folder).runs[0]["summary"]["maxAbsError"]["value"] is None


@pytest.mark.parametrize("text", ['{"schema": "nearbank-run-0"}', "[]", '{"schema": '])
def test_a_foreign_report_is_a_user_error(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UserError, match=r"error\[NB0606\]: a report cannot be read"):
        load_report(tmp_path)
