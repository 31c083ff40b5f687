# SPDX-License-Identifier: Apache-2.0
"""Every policy places a model; min-cut and oracle take the least total of the times that they decide on."""

from __future__ import annotations

import nearbank
import pytest
import torch
from conftest import needs_core
from nearbank.errors import UserError
from nearbank.settings import POLICIES
from torch import nn

pytestmark = needs_core


class Branches(nn.Module):
    """A stream that two nests read, a product and a reduction."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 256)

    def forward(self, x):
        stream = x.exp() + 1
        return self.linear(stream).tanh().sum(1), stream.t().contiguous() * 2


@pytest.fixture(scope="module")
def summaries(tmp_path_factory):
    """Plan once for each policy, on the same profiles; a cheap launch makes PIM worth it over one thread of this host."""
    database = tmp_path_factory.mktemp("profiles") / "profiles.sqlite"
    values = {"coherence.launchNs": "10", "coherence.returnNs": "10", "core.clockGHz": "8"}
    options = {"db": str(database), "set": values, "threads": 1, "simulate": "exact", "host": "native"}
    model, inputs = Branches(), (torch.randn(512, 256),)
    return {policy: nearbank.plan(model, inputs, policy=policy, **options).runs[0]["summary"] for policy in POLICIES}


def _total(summary, pim_time):
    return sum(summary[key]["value"] for key in ("hostTimeOfHostNests", pim_time, "crossingTime"))


@pytest.mark.parametrize(("policy", "pim_time"), [("min-cut", "predictedPimTime"), ("oracle", "pimTime")])
def test_the_cut_has_the_least_total_of_all_policies(summaries, policy, pim_time):
    least = _total(summaries[policy], pim_time)
    assert summaries[policy]["nestsOnPim"] > 0
    others = {name: _total(summary, pim_time) for name, summary in summaries.items() if name != "pim-only"}
    assert least <= min(others.values()) * (1 + 1e-9), others


def test_oracle_is_refused_without_simulated_times():
    with pytest.raises(UserError, match="NB0409"):
        nearbank.plan(Branches(), (torch.randn(8, 256),), policy="oracle", simulate="none", threads=1)
