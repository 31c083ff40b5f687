# SPDX-License-Identifier: Apache-2.0
"""SU-1 and SU-2 against hand-made sums, and the verdicts that they lead to."""

from __future__ import annotations

import pytest
from nearbank.report_verdict import verdict
from nearbank.speedup import speedup
from run_document_sample import make_run, quantity


def time(value):
    return quantity(value, "ns", "simulated")


def interval(low, high):
    return {"low": time(low), "high": time(high)}


def nest(key, where, host, pim=None):
    return {"key": key, "where": where, "modelledHostTimeInterval": host, "pimTimeInterval": pim, "hoisted": False}


def summary(alone, on_host, on_pim, crossing):
    return {
        "modelledHostTime": time(alone),
        "modelledHostTimeOfHostNests": time(on_host),
        "pimTime": time(on_pim),
        "crossingTime": quantity(crossing, "ns", "modelled"),
    }


def test_su1_divides_the_host_alone_by_all_that_the_placement_takes():
    ratio, bounds = speedup(summary(90, 30, 10, 5), [nest("a", "host", None), nest("b", "pim", None)])
    assert ratio == {"value": pytest.approx(90 / 45), "unit": "ratio", "kind": "simulated"}
    assert bounds["low"]["value"] == bounds["high"]["value"] == ratio["value"]


def test_su2_follows_the_derivatives():
    # One nest of 30 ns stays; two of one kernel, 30 ns each, take 5 ns each on PIM.
    nests = [nest("a", "host", interval(27, 33)), *[nest("b", "pim", interval(28, 32), interval(4, 6))] * 2]
    ratio, bounds = speedup(summary(90, 30, 10, 5), nests)

    def moved(host=0.0, host_of_b=0.0, pim=0.0):
        return (90 + host + 2 * host_of_b) / (45 + host + 2 * pim)

    terms = [moved(host=1e-6) - 2, moved(host_of_b=1e-6) - 2, moved(pim=1e-6) - 2]
    expected = sum((slope / 1e-6 * width) ** 2 for slope, width in zip(terms, (3, 2, 1), strict=True)) ** 0.5
    assert bounds["high"]["value"] - ratio["value"] == pytest.approx(expected, rel=1e-5)
    assert ratio["value"] - bounds["low"]["value"] == pytest.approx(expected, rel=1e-5)


def test_there_is_no_speedup_without_every_simulated_time():
    for name in summary(1, 1, 1, 1):
        assert speedup({**summary(90, 30, 10, 5), name: None}, []) is None


@pytest.mark.parametrize(
    ("width", "alone", "opening"),
    [
        (0, 90e6, "PIM helps 2.00x against host-16: "),
        (2e7, 10e6, "PIM does not help: 0.22x (0."),
        (9e7, 50e6, "PIM makes no sure"),
    ],
)
def test_the_verdict_opens_with_the_speedup(width, alone, opening):
    run = make_run(simulate="sampled")
    run["host"] = {"machine": "host-16", "kind": "simulated"}
    run["summary"] |= summary(alone, 30e6, 10e6, 5e6)
    pim = interval(10e6 - width / 2, 10e6 + width / 2)
    found = speedup(run["summary"], [nest("b", "pim", None, pim)])
    run["summary"]["speedup"], run["summary"]["speedupInterval"] = found
    assert verdict(run).startswith(opening)
