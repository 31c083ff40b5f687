# SPDX-License-Identifier: Apache-2.0
"""PyTorch models on DPUs: every kind of nest runs as emitted C on simulated DPUs and gives eager PyTorch's numbers."""

from __future__ import annotations

import json
import subprocess
import sys

import nearbank
import pytest
import torch
from conftest import needs_core
from nearbank.backend import nearbank_backend
from nearbank.errors import DeviceError, UserError
from torch import nn
from torch.nn import functional

pytestmark = [needs_core, pytest.mark.usefixtures("one_database")]


class Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def on_dpus(function, *inputs, machine="upmem-8", expects_host=False):
    """Run on DPUs with results poisoned before; return the outputs and the run of the report."""
    torch.manual_seed(0)
    options = {"machine": machine, "policy": "pim-only", "host": "native", "simulate": "exact", "threads": 2}
    compiled = torch.compile(Lambda(function), backend=nearbank_backend, options=options)
    with torch.no_grad():
        out = compiled(*inputs)
    run = nearbank.last_report().runs[0]
    sites = {nest["where"] for nest in run["nests"]}
    assert "pim" in sites and (expects_host or "host" not in sites), [n["why"]["reason"] for n in run["nests"]]
    assert any(launch["site"] == "pim" for launch in run["launches"])
    return out, run


def randint(low, high, *shape, dtype):
    return torch.randint(low, high, shape, dtype=dtype)


INTEGER_CASES = {
    "add int32": (lambda a, b: a + b * 3, lambda: (randint(-99, 99, 37, 5, dtype=torch.int32),) * 2),
    "matmul int32": (
        lambda a, b: a @ b,
        lambda: (randint(-99, 99, 7, 33, dtype=torch.int32), randint(-99, 99, 33, 19, dtype=torch.int32)),
    ),
    "matmul int8": (
        lambda a, b: a.int() @ b.int(),
        lambda: (randint(-128, 127, 5, 40, dtype=torch.int8), randint(-128, 127, 40, 3, dtype=torch.int8)),
    ),
    "sum int64": (lambda a: a.sum(1), lambda: (randint(-(2**40), 2**40, 13, 29, dtype=torch.int64),)),
    "compare": (lambda a, b: (a > b) & (a != 3), lambda: tuple(randint(0, 9, 11, 7, dtype=torch.int32) for _ in "ab")),
    "gather": (
        lambda table, index: table[index],
        lambda: (randint(-9, 9, 12, 5, dtype=torch.int32), randint(0, 12, 4, 3, dtype=torch.int64)),
    ),
    "transpose": (lambda a: a.T.contiguous() + 1, lambda: (randint(-9, 9, 13, 21, dtype=torch.int32),)),
    "one element": (lambda a: a + a, lambda: (randint(-9, 9, 1, dtype=torch.int32),)),
}


@pytest.mark.parametrize("case", INTEGER_CASES)
def test_integers_are_exact(case):
    function, make = INTEGER_CASES[case]
    inputs = make()
    out, _ = on_dpus(function, *inputs)
    assert torch.equal(out, function(*inputs))


FLOAT_CASES = {
    "elementwise": (lambda a, b: a * b - a / (b * b + 1), lambda: (torch.randn(17, 23), torch.randn(17, 23))),
    "broadcast": (lambda a, b: a + b, lambda: (torch.randn(9, 31), torch.randn(31))),
    "gelu": (functional.gelu, lambda: (torch.randn(5, 77),)),
    "matmul": (lambda a, b: a @ b, lambda: (torch.randn(13, 70), torch.randn(70, 11))),
    "linear": (
        lambda a, w, b: functional.linear(a, w, b),
        lambda: (torch.randn(3, 50), torch.randn(9, 50), torch.randn(9)),
    ),
    "vector": (lambda a, b: a @ b, lambda: (torch.randn(33, 65), torch.randn(65))),
    "batches": (lambda a, b: a @ b, lambda: (torch.randn(2, 3, 5, 8), torch.randn(2, 3, 8, 7))),
    "softmax": (lambda a: a.softmax(-1), lambda: (torch.randn(6, 45),)),
    "layer norm": (lambda a: functional.layer_norm(a, (37,)), lambda: (torch.randn(7, 37),)),
    "convolution": (
        lambda a, w: functional.conv2d(a, w, stride=2, padding=1),
        lambda: (torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3)),
    ),
    "pooling": (lambda a: functional.max_pool2d(a, 2), lambda: (torch.randn(2, 3, 8, 8),)),
    "bfloat16": (lambda a, b: a * b + a, lambda: (torch.randn(9, 14).bfloat16(), torch.randn(9, 14).bfloat16())),
}


@pytest.mark.parametrize("case", FLOAT_CASES)
def test_floats_agree_within_the_order_of_sums(case):
    """Against float64: at most four times eager's own error, or four units in the last place of the largest value."""
    function, make = FLOAT_CASES[case]
    torch.manual_seed(1)
    inputs = make()
    out, _ = on_dpus(function, *inputs)
    eager, exact = function(*inputs), function(*[tensor.double() for tensor in inputs])
    epsilon = torch.finfo(eager.dtype).eps
    bound = 4 * max((eager - exact).abs().max().item(), epsilon * exact.abs().max().item())
    assert (out - exact).abs().max().item() <= bound


def test_tasklets_share_long_sums():
    """Rounding errors grow with the length of a block, the number of blocks and that of tasklets."""
    a = torch.rand(500, 130)
    out, run = on_dpus(lambda a: a.sum(), a)
    assert run["nests"][0]["dpu"]["busyTasklets"] == 16
    assert abs(out.item() - a.double().sum().item()) <= 300 * torch.finfo(a.dtype).eps * a.sum().item()


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_tasklets_share_sums_of_few_rows(rows):
    a, b = (randint(-(2**31), 2**31 - 1, rows, 1003, dtype=torch.int32) for _ in "ab")
    out, run = on_dpus(lambda a, b: (a * b).sum(1, dtype=torch.int32), a, b, machine="upmem-1")
    assert torch.equal(out, (a * b).sum(1, dtype=torch.int32))
    assert run["nests"][-1]["dpu"]["busyTasklets"] >= 12


@pytest.mark.parametrize("machine", ["upmem-1", "upmem-3", "upmem-64"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 129)])
def test_any_number_of_dpus_takes_any_shape(machine, shape):
    a, b = randint(-9, 9, *shape, dtype=torch.int32), randint(-9, 9, *shape, dtype=torch.int32)
    out, run = on_dpus(lambda a, b: (a - b) @ b.T, a, b, machine=machine)
    assert torch.equal(out, (a - b) @ b.T)
    assert all(nest["dpu"]["dpus"] <= int(machine[6:]) for nest in run["nests"])


def test_index_out_of_range_is_reported():
    table, index = torch.randn(5, 3), torch.tensor([1, 7])
    with pytest.raises(IndexError, match="index out of range"):
        on_dpus(lambda table, index: table[index], table, index)


class TwoMatrices(nn.Module):
    """Weights, an activation, and something that only the host can do."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(24, 40), nn.Linear(40, 9)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


def test_plan_shows_shares_residence_and_kinds(tmp_path):
    report = nearbank.plan(TwoMatrices(), (torch.randn(6, 24),), machine="upmem-640", policy="pim-only", host="native")
    run = report.runs[0]
    products = [nest for nest in run["nests"] if nest["kind"] == "contraction"]
    assert len(products) == 2 and all(nest["where"] == "pim" for nest in products)
    for nest in products:
        dpu = nest["dpu"]
        assert 1 < dpu["dpus"] <= 640 and dpu["dpuShare"] == dpu["dpus"] / 640
        assert 0 < dpu["mramBytes"] <= dpu["mramCapacity"] < 64 << 20
        assert dpu["residentBytes"] > 0 and dpu["residentBuffers"]
        assert dpu["transferTime"]["kind"] == "modelled" and nest["pimTime"]["kind"] == "simulated"
        assert nest["predictedPimTime"]["kind"] == "predicted"
        assert any(equation["id"] == "PL-10" for equation in nest["why"]["equations"])
    # Each launch pays its own transfers; what is resident is not among them.
    crossings = [crossing for crossing in run["crossings"] if crossing["nest"] == products[0]["id"]]
    assert {"launch", "gather"} <= {crossing["kind"] for crossing in crossings}
    assert not {crossing["buffer"] for crossing in crossings} & set(products[0]["dpu"]["residentBuffers"])
    total = sum(crossing["time"]["value"] for crossing in crossings)
    assert total == pytest.approx(products[0]["dpu"]["transferTime"]["value"])
    assert "shares of DPUs" in report.to_text()


@pytest.mark.parametrize(
    ("shape", "machine"), [((192, 96, 24), "upmem-1"), ((8, 1200, 40), "upmem-1"), ((160, 1200, 4), "upmem-1")]
)
def test_sampled_time_is_near_the_exact_one(shape, machine, monkeypatch):
    """Launches cut by pieces of work, by the length of sums, and by both."""
    monkeypatch.setenv("NEARBANK_UPMEM", "fast")
    rows, depth, columns = shape
    inputs = (torch.randn(rows, depth), torch.randn(depth, columns))
    module = Lambda(lambda a, b: a @ b)
    options = {"machine": machine, "policy": "pim-only", "host": "native"}
    times = {}
    for simulate in ("sampled", "exact"):
        run = nearbank.plan(module, inputs, simulate=simulate, **options).runs[0]
        times[simulate] = [nest["pimTime"]["value"] for nest in run["nests"] if nest["kind"] == "contraction"]
    assert times["sampled"] != times["exact"]
    assert times["sampled"] == pytest.approx(times["exact"], rel=0.02)


def test_prediction_is_of_the_simulated_order():
    run = nearbank.plan(
        TwoMatrices(), (torch.randn(32, 24),), machine="upmem-8", policy="pim-only", host="native"
    ).runs[0]
    for nest in run["nests"]:
        assert nest["predictedPimTime"]["value"] == pytest.approx(nest["pimTime"]["value"], rel=0.5), nest["kernel"]


@pytest.mark.parametrize("policy", ["min-cut", "greedy", "two-stage", "oracle"])
def test_small_nests_do_not_pay_for_a_launch(policy):
    run = nearbank.plan(TwoMatrices(), (torch.randn(6, 24),), machine="upmem-64", policy=policy).runs[0]
    assert {nest["where"] for nest in run["nests"]} == {"host"}
    if policy in ("min-cut", "oracle"):  # Launches pay for what they move, and for nothing that near-memory cores pay.
        for nest in run["nests"]:
            cut = next(equation for equation in nest["why"]["equations"] if equation["id"] == "PL-5")
            host, pim, transfers = (value["value"] for value in cut["inputs"])
            assert transfers == pytest.approx(nest["dpu"]["transferTime"]["value"])
            assert cut["threshold"] - cut["value"] == pytest.approx(pim + transfers - host)


def test_what_does_not_fit_stays_on_the_host_and_says_how_many_dpus_would_do():
    x, weight = torch.ones(1, 4096), torch.ones(4096, 4200)
    run = nearbank.plan(
        Lambda(lambda x, w: x @ w), (x, weight), machine="upmem-1", policy="pim-only", host="native", simulate="none"
    ).runs[0]
    product = next(nest for nest in run["nests"] if nest["kind"] == "contraction")
    assert product["where"] == "host" and "DPUs would hold" in product["why"]["reason"]


def test_nest_without_c_stays_on_the_host_and_says_why():
    inputs = (torch.randn(5, 4), torch.randn(5, 4).half())
    _, run = on_dpus(lambda a, b: (a * 2, b * b), *inputs, expects_host=True)
    reasons = [nest["why"]["reason"] for nest in run["nests"] if nest["where"] == "host"]
    assert reasons and all(reason.startswith("no PIM code: ") for reason in reasons)


def test_unknown_value_of_a_dpu_machine():
    with pytest.raises(UserError, match="NB0103"):
        nearbank.plan("mlp", machine="upmem-64", set=["dpu.clokMHz=400"])


@pytest.mark.parametrize("name", ["upmem-0", "upmem-2000000", "upmem-", "upmem-64k", "upmem-64-links"])
def test_numbers_of_dpus_that_no_machine_has(name):
    with pytest.raises(UserError, match="NB0101") as raised:
        nearbank.plan("mlp", machine=name)
    assert "upmem-N for N DPUs, 1 to 1048576" in str(raised.value)


def test_unknown_engine(monkeypatch):
    monkeypatch.setenv("NEARBANK_UPMEM", "quick")
    with pytest.raises(UserError, match="NB0802"):
        nearbank.plan(TwoMatrices(), (torch.randn(6, 24),), machine="upmem-8", host="native")


def test_programs_that_cannot_be_compiled(monkeypatch):
    monkeypatch.setenv("NEARBANK_CLANG", "/nowhere")
    with pytest.raises(DeviceError, match="NB0813"):
        nearbank.plan(TwoMatrices(), (torch.randn(6, 24),), machine="upmem-8", host="native")


def test_programs_that_a_dpu_cannot_hold_stay_on_the_host_and_say_why():
    run = nearbank.plan(
        TwoMatrices(),
        (torch.randn(6, 24),),
        machine="upmem-8",
        policy="pim-only",
        host="native",
        set={"dpu.tasklets": 8},
    ).runs[0]
    assert {nest["where"] for nest in run["nests"]} == {"host"}
    assert all("its program should have" in nest["why"]["reason"] for nest in run["nests"])


def test_emission_needs_dpus(tmp_path):
    with pytest.raises(UserError, match="NB0208") as raised:
        nearbank.plan("mlp", machine="nmc-64", emit_upmem=tmp_path)
    assert "a machine with DPUs" in str(raised.value)


def test_both_engines_give_the_same_numbers(monkeypatch):
    a, b = torch.randn(5, 40), torch.randn(40, 6)
    results, cycles = [], []
    for engine in ("exact", "fast"):
        monkeypatch.setenv("NEARBANK_UPMEM", engine)
        torch._dynamo.reset()
        out, run = on_dpus(lambda a, b: a @ b, a, b)
        results.append(out)
        cycles.append([launch["time"]["value"] for launch in run["launches"] if launch["site"] == "pim"])
    assert torch.equal(*results)
    assert cycles[1] == pytest.approx(cycles[0], rel=0.02)


def test_emitted_projects_compute_what_the_run_does(tmp_path):
    from nearbank import upmem_home

    torch.manual_seed(2)
    a, b = torch.randn(7, 30), torch.randn(30, 11)
    nearbank.plan(
        Lambda(lambda a, b: a @ b),
        (a, b),
        machine="upmem-4",
        policy="pim-only",
        host="native",
        simulate="none",
        emit_upmem=tmp_path,
    )
    folder = next(path for path in tmp_path.iterdir() if path.name.startswith("contraction"))
    environment = {"PATH": f"{upmem_home.folder()}/bin:/usr/lib/llvm-22/bin:/usr/bin:/bin"}
    subprocess.run(["make", "-s"], cwd=folder, env=environment, check=True)
    for number, tensor in enumerate((a, b)):
        tensor.numpy().tofile(folder / f"operand{number}.bin")
    done = subprocess.run(["./bin/host_code", "."], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = torch.frombuffer(bytearray((folder / "result2.bin").read_bytes()), dtype=torch.float32).view(7, 11)
    out, _ = on_dpus(lambda a, b: a @ b, a, b, machine="upmem-4")
    assert torch.equal(result, out)


def test_run_from_the_command_line(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n\n\ndef build():\n    return torch.nn.Linear(96, 200), (torch.randn(4, 96),)\n"
    )
    command = ["run", f"{tmp_path}/model.py:build", "--machine", "upmem-64", "--policy", "pim-only", "--host", "native"]
    done = subprocess.run(
        [sys.executable, "-m", "nearbank", *command, "--out", str(tmp_path / "out"), "--format", "json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["runs"][0]
    assert run["summary"]["nestsOnPim"] == len(run["nests"])
    assert run["summary"]["maxAbsError"]["value"] <= run["summary"]["errorBound"]["value"]
