# SPDX-License-Identifier: Apache-2.0
"""two-stage does not need the simulator; simulated times repeat; a second run profiles nothing."""

from __future__ import annotations

import json
import math
import sqlite3

import nearbank
import pytest
import torch
from conftest import needs_core
from torch import nn

pytestmark = needs_core

#: Thresholds that send some of this file's small nests to PIM and keep others, whatever the host's speed.
THRESHOLDS = {"placement.workOperations": "4096", "placement.mpki": "1"}


class Mixed(nn.Module):
    """A stream, a matrix product, a reduction and a few tiny nests."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.linear = nn.Linear(96, 64)

    def forward(self, x):
        stream = x.exp() + 1
        return self.linear(stream).tanh().sum(1), stream.t().contiguous(), x[0, :4] * 2


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("profiles") / "profiles.sqlite"


def options(database, **others):
    return {"db": str(database), "set": dict(THRESHOLDS), "threads": 1, **others}


def inputs():
    return (torch.randn(64, 96, generator=torch.Generator().manual_seed(0)),)


def places(report):
    return {nest["id"]: (nest["key"], nest["where"]) for nest in report.runs[0]["nests"]}


def test_two_stage_places_alike_with_and_without_the_simulator(database):
    planned = [nearbank.plan(Mixed(), inputs(), simulate=mode, **options(database)) for mode in ("none", "exact")]
    ran = [nearbank.run(Mixed(), inputs(), simulate=mode, **options(database)) for mode in ("none", "exact")]
    expected = places(planned[0])
    assert {where for _, where in expected.values()} == {"host", "pim"}
    assert [places(report) for report in (*planned, *ran)] == [expected] * 4
    # Only with the simulator are there simulated times, and they were not what decided.
    assert planned[0].runs[0]["summary"]["pimTime"] is None
    assert planned[1].runs[0]["summary"]["pimTime"]["kind"] == "simulated"


@pytest.mark.parametrize(
    "values",
    [
        {"core.count": "1", "core.clockGHz": "0.01", "vault.bandwidthGBs": "0.01"},
        {"link.bandwidthGBs": "0.001", "coherence.launchNs": "1000000"},
    ],
)
def test_two_stage_reads_no_property_of_the_pim_side(database, values):
    known = {value["path"] for value in json.loads(_core().show_machine("nmc-64", ""))["values"]}
    values = {path: value for path, value in values.items() if path in known}
    assert values
    before = nearbank.plan(Mixed(), inputs(), **options(database))
    after = nearbank.plan(Mixed(), inputs(), **{**options(database), "set": {**THRESHOLDS, **values}})
    assert places(after) == places(before)


def test_two_stage_follows_from_stored_profiles_facts_and_thresholds(database):
    """PL-1 and PL-2 of docs/model.md, computed here from the database alone."""
    (entry,) = nearbank.plan(Mixed(), inputs(), **options(database)).runs
    shown = json.loads(_core().show_machine("nmc-64", json.dumps([[*pair] for pair in THRESHOLDS.items()])))
    threshold = {v["path"]: float(v["value"]) for v in shown["values"] if v["path"].startswith("placement.")}
    with sqlite3.connect(database) as connection:
        connection.row_factory = sqlite3.Row
        profiles = {row["nest"]: row for row in connection.execute("SELECT * FROM profiles WHERE threads = 1")}
    timed = [nest for nest in entry["nests"] if not nest["hoisted"]]
    program = sum(profiles[nest["key"]]["allThreadsNs"] for nest in timed)
    for nest in timed:
        profile, operations = profiles[nest["key"]], nest["facts"]["operations"]
        executions = sum(other["key"] == nest["key"] for other in timed)
        work = operations["total"] + operations["loads"] + operations["stores"]
        share = executions * profile["allThreadsNs"] / program
        mpki = profile["l3Misses"] / profile["instructions"] * 1000 if profile["instructions"] else 0
        lfmr = profile["l3Misses"] / profile["l1Misses"] if profile["l1Misses"] else 0
        intensity = operations["total"] / profile["dramBytes"] if profile["dramBytes"] else math.inf
        if operations["total"] == 0:
            intensity = 0
        on_pim = (
            work >= threshold["placement.workOperations"]
            and share >= threshold["placement.workShare"]
            and mpki >= threshold["placement.mpki"]
            and lfmr >= threshold["placement.lfmr"]
            and intensity <= threshold["placement.intensity"]
        )
        assert nest["where"] == ("pim" if on_pim else "host"), nest["kernel"]
        assert {record["id"] for record in nest["why"]["equations"]} >= {"PL-1.1", "PL-1.2", "PL-2"}


def test_simulated_times_repeat_for_any_number_of_threads(tmp_path):
    """The run document of pim-only, apart from what is measured, is the same again and with more threads."""
    times = []
    for threads in (1, 2, 2, 3):
        report = nearbank.run(
            Mixed(), inputs(), policy="pim-only", db=str(tmp_path / "profiles.sqlite"), threads=threads
        )
        (entry,) = report.runs
        launches = [
            {name: launch[name] for name in ("nest", "time", "instructions", "coreCycles", "dramBytes", "counters")}
            for launch in entry["launches"]
            if launch["site"] == "pim"
        ]
        assert len(launches) == entry["summary"]["numNests"]
        times.append((entry["summary"]["pimTime"], launches))
    assert times[0][0]["value"] > 0 and times[0][0]["kind"] == "simulated"
    assert times[1:] == times[:1] * 3


def test_a_second_run_profiles_nothing_anew(tmp_path):
    database = tmp_path / "new" / "profiles.sqlite"
    first, second = (nearbank.run(Mixed(), inputs(), **options(database)).runs[0] for _ in range(2))
    assert first["summary"]["profiledNests"] == first["summary"]["distinctNests"] > 0
    assert second["summary"]["profiledNests"] == 0
    assert second["summary"]["reusedProfiles"] == first["summary"]["distinctNests"]
    assert [nest["hostTime"] for nest in first["nests"]] == [nest["hostTime"] for nest in second["nests"]]


def _core():
    import nearbank._core

    return nearbank._core
