# SPDX-License-Identifier: Apache-2.0
"""UPMEM programs: the examples, errors, the simulated clock and the report."""

import json
import re
import subprocess

import pytest
import upmem_builds
from nearbank import upmem_home, upmem_report
from nearbank.cli import main
from upmem_builds import EXAMPLES, build_example, compile_dpu, compile_host, run

NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "Makefile").exists())


@pytest.fixture(scope="module")
def environment():
    return upmem_builds.environment()


def compile_pair(folder, environment, dpu, host):
    """Compile two source texts; return the compiler's outcome for the DPU."""
    compile_host(folder, environment, host)
    return compile_dpu(folder, environment, dpu)


@pytest.mark.parametrize(("dpus", "tasklets"), [(1, 1), (3, 11), (4, 16), (2, 24)])
@pytest.mark.parametrize("name", NAMES)
def test_examples_compute_what_the_host_computes(name, dpus, tasklets, tmp_path, environment):
    folder = build_example(name, tmp_path / name, environment, dpus, tasklets)
    result = run(folder, environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "OK" in result.stdout


def test_any_number_of_host_threads_gives_the_same_run(tmp_path, environment):
    folder = build_example("dot_product", tmp_path / "x", environment, 70, 16)
    outputs, launches = [], []
    for threads in ("1", "3"):
        result = run(folder, environment, "512", NEARBANK_THREADS=threads, NEARBANK_STATS="run.json")
        outputs.append(result.stdout)
        events = json.loads((folder / "run.json").read_text())["events"]
        launches.append([{**event, "startUs": 0} for event in events])
    assert outputs[0] == outputs[1]
    assert launches[0] == launches[1]


def test_a_program_times_itself_in_simulated_time(tmp_path, environment):
    folder = build_example("vector_add", tmp_path / "x", environment, 1, 16)
    pattern = r"to DPUs ([0-9.]+) ms, kernel ([0-9.]+) ms"
    times = []
    for _ in range(5):
        result = run(folder, environment, "65536", NEARBANK_STATS="run.json")
        times.append(float(re.search(pattern, result.stdout)[2]))
    events = json.loads((folder / "run.json").read_text())["events"]
    launch = next(event for event in events if event["what"] == "launch")
    # The call takes what the launch takes; 0.05 ms are for the host's own instructions when nobody interrupts it.
    assert launch["us"] / 1000 <= min(times) <= launch["us"] / 1000 + 0.05
    assert launch["us"] == pytest.approx(150 + launch["maxCycles"] / 350)


FAULTS = {
    "halt": ("#include <defs.h>\nint main(void) {\n  halt();\n}\n", "halt", 3),
    "assert": ("#include <assert.h>\nint x;\nint main(void) {\n  assert(x == 1);\n}\n", "assertion failed: x == 1", 4),
    "stack": (
        "int f(int n) {\n  volatile char a[64];\n  a[n & 63] = n;\n  return f(n + 1) + a[3];\n}\n"
        "int main(void) { return f(0); }\n",
        "stack overflow",
        None,
    ),
    "heap": (
        "#include <alloc.h>\nint main(void) {\n  for (;;)\n    mem_alloc(1024);\n}\n",
        "WRAM heap is full",
        None,
    ),
    "bounds": (
        "volatile int *p = (int *)0x20000;\nint main(void) {\n  return *p;\n}\n",
        "access out of WRAM (address 0x20000)",
        3,
    ),
    "unaligned": (
        "volatile int *p = (int *)0x1002;\nint main(void) {\n  return *p;\n}\n",
        "unaligned access to WRAM",
        3,
    ),
    "dma": (
        "#include <mram.h>\nint main(void) {\n  mram_read(DPU_MRAM_HEAP_POINTER, (void *)0xff00, 2048);\n}\n",
        "DMA of 2048 bytes out of WRAM",
        None,
    ),
    "deadlock": (
        "#include <barrier.h>\nBARRIER_INIT(b, 2)\nint main(void) {\n  barrier_wait(&b);\n}\n",
        "deadlock: 1 tasklets sleep",
        None,
    ),
    "endless": ("volatile int x;\nint main(void) {\n  while (!x) {\n  }\n}\n", "endless loop", None),
}
FAULT_HOST = r"""
int main(void) {
  struct dpu_set_t set;
  DPU_ASSERT(dpu_alloc(2, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  dpu_error_t status = dpu_launch(set, DPU_SYNCHRONOUS);
  char *text = dpu_error_to_string(status);
  printf("%d %s\n", status == DPU_ERR_DPU_FAULT, text);
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_free(set));
  return 0;
}
"""


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_explained_and_the_host_goes_on(name, tmp_path, environment):
    source, message, line = FAULTS[name]
    assert compile_pair(tmp_path, environment, source, FAULT_HOST).returncode == 0
    result = run(tmp_path, environment, NEARBANK_TIMEOUT_CYCLES="1000000")
    assert result.returncode == 0
    assert result.stdout == "1 dpu is in fault\n"
    assert message in result.stderr
    assert "error[NB0806]: a DPU is in fault\n  where:    DPU 0, and 1 more of this launch\n" in result.stderr
    if line:
        assert f"task.c:{line}" in result.stderr


CHECKS_DPU = (
    "#include <mram.h>\n__host unsigned v[4]; __mram_noinit unsigned m[64];\n"
    "__attribute__((used)) unsigned own[4]; int main(void) { return 0; }\n"
)
CHECKS_HOST = r"""
static int number;
static void expect(dpu_error_t actual, dpu_error_t wanted) {
  ++number;
  if (actual != wanted)
    printf("check %d: %s\n", number, dpu_error_to_string(actual));
}
int main(void) {
  struct dpu_set_t set, dpu;
  struct dpu_program_t *program;
  struct dpu_symbol_t symbol;
  char data[64] = {0};
  expect(dpu_alloc(1, "simulator", &set), DPU_ERR_INVALID_PROFILE);
  expect(dpu_alloc(1000000, NULL, &set), DPU_ERR_ALLOCATION);
  expect(dpu_alloc(2, "backend=simulator", &set), DPU_OK);
  expect(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
  expect(dpu_load(set, "/nowhere", NULL), DPU_ERR_ELF_NO_SUCH_FILE);
  expect(dpu_load(set, "/proc/self/exe", NULL), DPU_ERR_ELF_INVALID_FILE);
  expect(dpu_load(set, "bin/dpu_code", &program), DPU_OK);
  expect(dpu_broadcast_to(set, "nothing", 0, data, 8, DPU_XFER_DEFAULT), DPU_ERR_UNKNOWN_SYMBOL);
  expect(dpu_broadcast_to(set, "own", 0, data, 8, DPU_XFER_DEFAULT), DPU_ERR_UNKNOWN_SYMBOL);
  expect(dpu_get_symbol(program, "own", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
  expect(dpu_broadcast_to(set, "v", 0, data, 20, DPU_XFER_DEFAULT), DPU_ERR_INVALID_SYMBOL_ACCESS);
  expect(dpu_broadcast_to(set, "v", 2, data, 4, DPU_XFER_DEFAULT), DPU_ERR_INVALID_WRAM_ACCESS);
  expect(dpu_broadcast_to(set, "m", 4, data, 8, DPU_XFER_DEFAULT), DPU_ERR_INVALID_MRAM_ACCESS);
  expect(dpu_copy_from(set, "v", 0, data, 8), DPU_ERR_INVALID_DPU_SET);
  strcpy(data, "1234567");
  expect(dpu_broadcast_to(set, "m", 8, data, 8, DPU_XFER_DEFAULT), DPU_OK);
  DPU_FOREACH(set, dpu) {
    memset(data, 0, sizeof data);
    expect(dpu_copy_from(dpu, "m", 8, data, 8), DPU_OK);
    if (strcmp(data, "1234567"))
      printf("data differ\n");
  }
  expect(dpu_free(set), DPU_OK);
  printf("%d checks\n", number);
  return 0;
}
"""


def test_host_calls_make_the_checks_of_the_sdk(tmp_path, environment):
    compile_pair(tmp_path, environment, CHECKS_DPU, CHECKS_HOST)
    result = run(tmp_path, environment)
    assert result.stdout == "18 checks\n", result.stdout + result.stderr


def test_report_shows_launches_and_transfers(tmp_path, environment, capsys):
    folder = build_example("histogram", tmp_path / "x", environment, 2, 16)
    run(folder, environment, NEARBANK_STATS="run.json")
    page, trace = tmp_path / "run.html", tmp_path / "trace.json"
    arguments = ["upmem", "report", str(folder / "run.json"), "--html", str(page), "--trace", str(trace)]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "launches (time and cycles simulated)" in text
    assert "transfers (time modelled)" in text
    assert "__sys_used_mram_end" in text
    assert "<table>" in page.read_text()
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert "launch" in names
    launch = next(e for e in upmem_report.read(folder / "run.json")["events"] if e["what"] == "launch")
    assert launch["dmaReadBytes"] == 2 * 16384
    assert sum(launch["slotsByKind"].values()) == launch["slots"]


def test_report_refuses_other_files(tmp_path, capsys):
    (tmp_path / "other.json").write_text("{}")
    assert main(["upmem", "report", str(tmp_path / "other.json")]) == 1
    assert "error[NB0810]" in capsys.readouterr().err


def test_env_is_text_for_a_shell(capsys):
    assert main(["upmem", "env"]) == 0
    text = capsys.readouterr().out
    found = subprocess.run(
        ["bash", "-c", f"{text}\ncommand -v dpu-pkg-config"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(upmem_home.folder() / "bin" / "dpu-pkg-config")
