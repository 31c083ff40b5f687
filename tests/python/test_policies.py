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
def runs(tmp_path_factory):
    """Plan once for each policy, on the same profiles, beside a single modelled core that PIM is worth it over."""
    options = {"db": str(tmp_path_factory.mktemp("profiles") / "profiles.sqlite"), "host": "pimprof-host"}
    model, inputs = Branches(), (torch.randn(512, 256),)
    return {
        policy: nearbank.plan(model, inputs, policy=policy, simulate="exact", **options).runs[0] for policy in POLICIES
    }


def _total(run, host_time, pim_time):
    on_host = [nest for nest in run["nests"] if nest["where"] == "host" and not nest["hoisted"]]
    summary = run["summary"]
    return sum(
        [nest[host_time]["value"] for nest in on_host], summary[pim_time]["value"] + summary["crossingTime"]["value"]
    )


@pytest.mark.parametrize(
    ("policy", "times"),
    [("min-cut", ("predictedHostTime", "predictedPimTime")), ("oracle", ("modelledHostTime", "pimTime"))],
)
def test_the_cut_has_the_least_total_of_all_policies(runs, policy, times):
    least = _total(runs[policy], *times)
    assert runs[policy]["summary"]["nestsOnPim"] > 0
    others = {name: _total(run, *times) for name, run in runs.items() if name != "pim-only"}
    assert least <= min(others.values()) * (1 + 1e-9), others


def test_oracle_is_refused_without_simulated_times():
    with pytest.raises(UserError, match="NB0409"):
        nearbank.plan(Branches(), (torch.randn(8, 256),), policy="oracle", simulate="none", threads=1)
