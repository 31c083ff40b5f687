# SPDX-License-Identifier: Apache-2.0
"""Energies of a plan are the counts and times of its document times those of the machine file (EN-1, EN-2)."""

from __future__ import annotations

import nearbank
import pytest
import torch
from conftest import needs_core
from torch import nn

pytestmark = needs_core

COUNTED = [
    "intAluPj",
    "intMulDivPj",
    "branchPj",
    "loadPj",
    "storePj",
    "floatAddPj",
    "floatMulPj",
    "floatFmaPj",
    "floatDivPj",
    "floatOtherPj",
    "otherPj",
    "vectorLanePj",
    "l1AccessPj",
    "l2AccessPj",
    "l3AccessPj",
    "dramActivatePj",
    "dramReadPjPerBit",
    "dramWritePjPerBit",
    "linkPjPerBit",
    "staticWatts",
]


class Rows(nn.Module):
    """A product, and a reduction of it."""

    def forward(self, x):
        return (x @ x.t()).exp().sum(1)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Plan with some energies of the PIM machine, the others 0; counts come from one database."""
    database = tmp_path_factory.mktemp("profiles") / "profiles.sqlite"

    def plan(values, **options):
        energies = {f"energy.{name}": str(values.get(name, 0)) for name in COUNTED}
        options = {"db": str(database), "threads": 1, "simulate": "exact", "policy": "pim-only", **options}
        return nearbank.plan(Rows(), (torch.randn(256, 64),), machine="nmc-32", set=energies, **options).runs[0]

    return plan


def _value(entry, name, unit="pJ"):
    quantity = entry[name]
    assert (quantity["unit"], quantity["kind"]) == (unit, "modelled" if unit == "pJ" else quantity["kind"])
    return quantity["value"]


def test_dram_energy_is_bits_times_energy_per_bit(planned):
    run = planned({"dramReadPjPerBit": 3, "dramWritePjPerBit": 3}, host="native")
    nests = [nest for nest in run["nests"] if nest["pimTime"]]
    assert nests
    for nest in nests:
        assert _value(nest, "pimEnergy") == pytest.approx(3 * 8 * nest["pimDramBytes"]["value"])
    assert _value(run["summary"], "pimEnergy") == pytest.approx(3 * 8 * run["summary"]["dramBytes"]["value"])
    assert _value(run["summary"], "energy") == pytest.approx(_value(run["summary"], "pimEnergy")), "nothing elsewhere"


def test_static_energy_is_power_times_time(planned):
    run = planned({"staticWatts": 2}, host="native")
    assert _value(run["summary"], "pimEnergy") == pytest.approx(2 * 1000 * run["summary"]["pimTime"]["value"])


def test_link_energy_is_bits_that_cross(planned):
    summary = planned({"linkPjPerBit": 5}, host="native")["summary"]
    assert summary["linkBytes"]["value"] > 0
    assert _value(summary, "linkEnergy") == pytest.approx(5 * 8 * summary["linkBytes"]["value"])
    assert _value(summary, "pimEnergy") == 0


def test_energy_of_a_run_is_that_of_both_sides_and_the_link(planned):
    run = planned({"l1AccessPj": 1, "linkPjPerBit": 1}, host="host-16", forbid=("n0",))
    summary = run["summary"]
    on_host = [nest for nest in run["nests"] if nest["where"] == "host" and not nest["hoisted"]]
    parts = [_value(summary, name) for name in ("pimEnergy", "linkEnergy", "modelledHostEnergyOfHostNests")]
    assert _value(summary, "energy") == pytest.approx(sum(parts))
    assert parts[2] == pytest.approx(sum(_value(nest, "modelledHostEnergy") for nest in on_host))
    assert on_host
    assert _value(summary, "modelledHostEnergy") > parts[2] > 0 < parts[0]


def test_executed_launches_have_their_energy(planned):
    torch.manual_seed(0)
    values = {f"energy.{name}": "0" for name in COUNTED} | {"energy.l1AccessPj": "7"}
    options = {"machine": "nmc-32", "policy": "pim-only", "threads": 1, "simulate": "exact", "host": "native"}
    run = nearbank.run(Rows(), (torch.randn(64, 64),), set=values, **options).runs[0]
    launches = [launch for launch in run["launches"] if launch["site"] == "pim"]
    assert launches
    for launch in launches:
        assert _value(launch, "energy") == pytest.approx(7 * launch["l1dAccesses"])
