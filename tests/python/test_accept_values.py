# SPDX-License-Identifier: Apache-2.0
"""Values and gradients of every dtype under every policy, from a program that imports nothing but torch."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import nearbank
import pytest
from conftest import needs_core

pytestmark = needs_core

ROOT = Path(__file__).parents[2]

PROGRAM = """
import copy, json, sys
import torch
from torch import nn

assert not [name for name in sys.modules if name.partition(".")[0] == "nearbank"]
policy = sys.argv[1]
options = {"machine": "nmc-64", "policy": policy, "simulate": "exact"}
if policy == "two-stage":
    options["set"] = {"placement.workOperations": "200", "placement.mpki": "0"}
rows = []


def compiled(module):
    torch._dynamo.reset()
    return torch.compile(module, backend="nearbank", options=options)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 5)

    def forward(self, tokens, x):
        hidden = self.norm(self.embedding(tokens) + x)
        return self.down(nn.functional.gelu(self.up(hidden))).softmax(-1)


def results(module, call, tokens, x, weights):
    out = call(tokens, x)
    (out * weights).sum().backward()
    return [out.detach(), x.grad, *[p.grad for p in module.parameters()]]


for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    torch.manual_seed(0)
    module = Small().to(dtype)
    tokens, x = torch.tensor([[0, 3, 6], [3, 3, 1]]), torch.randn(2, 3, 8).to(dtype)
    weights = torch.randn(2, 3, 5).to(dtype)
    found = []
    for kind in ("mine", "eager", "exact"):
        twin = copy.deepcopy(module).to(torch.float64 if kind == "exact" else dtype)
        leaf = x.detach().to(twin.up.weight.dtype).requires_grad_()
        call = compiled(twin) if kind == "mine" else twin
        found.append(results(twin, call, tokens, leaf, weights.to(leaf.dtype)))
    for number, (mine, eager, exact) in enumerate(zip(*found)):
        assert mine.dtype == dtype and mine.shape == exact.shape, (dtype, number)
        scale = exact.abs().max().item()
        slack = {torch.float32: 1e-5, torch.float64: 1e-13}.get(dtype, torch.finfo(dtype).eps)
        bound = 2 * (eager.double() - exact).abs().max().item() + slack * scale
        error = (mine.double() - exact).abs().max().item()
        rows.append([f"{dtype} result {number}", error, bound])


class Whole(nn.Module):
    def forward(self, x, y):
        elementwise = x + y, (x & y) ^ x, x < y, torch.where(x == y, x, y)
        return *elementwise, x.sum(0), (x > y).any(), x.t().contiguous()


for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
    low, high = (0, 2) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    x, y = torch.randint(low, high, (2, 16, 9)).to(dtype)
    for number, (mine, eager) in enumerate(zip(compiled(Whole())(x, y), Whole()(x, y))):
        same = mine.dtype == eager.dtype and torch.equal(mine, eager)
        rows.append([f"{dtype} result {number}", 0 if same else 1, 0])

import nearbank

places = [nest["where"] for run in nearbank.last_report().runs for nest in run["nests"]]
sites = [launch["site"] for run in nearbank.last_report().runs for launch in run["launches"]]
print(json.dumps({"rows": rows, "places": places, "sites": sites}))
"""


def environment(folder: Path) -> dict[str, str]:
    """Make the entry point of pyproject.toml visible where the package is not installed."""
    path = [str(Path(nearbank.__file__).absolute().parents[1])]
    if not importlib.metadata.entry_points(group="torch_dynamo_backends", name="nearbank"):
        with (ROOT / "pyproject.toml").open("rb") as stream:
            points = tomllib.load(stream)["project"]["entry-points"]["torch_dynamo_backends"]
        metadata = folder / "nearbank-0.1.0.dist-info"
        metadata.mkdir()
        metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: nearbank\nVersion: 0.1.0\n")
        lines = ["[torch_dynamo_backends]", *[f"{name} = {value}" for name, value in points.items()]]
        metadata.joinpath("entry_points.txt").write_text("\n".join(lines) + "\n")
        path.append(str(folder))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


@pytest.mark.parametrize("policy", ["cpu-only", "pim-only", "two-stage"])
def test_a_program_that_imports_only_torch_gets_right_values_and_gradients(policy, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), policy],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    document = json.loads(done.stdout.splitlines()[-1])
    assert len(document["rows"]) == 4 * 9 + 6 * 7
    assert [row for row in document["rows"] if not row[1] <= row[2]] == []
    expected = {"cpu-only": {"host"}, "pim-only": {"pim"}}.get(policy)
    if expected:
        assert set(document["places"]) == set(document["sites"]) == expected


@pytest.mark.parametrize("policy", ["pim-only", "cpu-only"])
def test_an_index_out_of_range_is_an_index_error_as_in_eager(policy):
    import torch

    table = torch.nn.Embedding(10, 4)
    for index in (10, -1, 2**40):
        with pytest.raises(IndexError):
            table(torch.tensor([3, index]))
        with pytest.raises(IndexError, match="NB0301"):
            nearbank.run(table, (torch.tensor([3, index]),), policy=policy)
    summary = nearbank.run(table, (torch.tensor([3, 9]),), policy=policy).runs[0]["summary"]
    assert summary["maxAbsError"]["value"] == 0


@pytest.mark.parametrize("policy", ["cpu-only", "pim-only"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_numbers_round_to_bfloat16_as_in_eager(source, policy):
    """Ties and specials too; a processor without such an instruction does it by a function."""
    import torch

    class Narrow(torch.nn.Module):
        def forward(self, x):
            return x.to(torch.bfloat16)

    torch.manual_seed(0)
    values = torch.randn(400, dtype=torch.float64) * 10.0 ** torch.linspace(-36, 36, 400, dtype=torch.float64)
    ties = torch.randn(99).bfloat16().double() * (1 + 2.0**-8)
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 3.4e38], dtype=torch.float64)
    x = torch.cat([values, ties, special]).to(getattr(torch, source))
    summary = nearbank.run(Narrow(), (x,), policy=policy).runs[0]["summary"]
    assert summary["maxAbsError"]["value"] == 0
