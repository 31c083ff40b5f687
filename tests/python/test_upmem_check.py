# SPDX-License-Identifier: Apache-2.0
"""`nearbank upmem check`: one program for each kind of fault, and silence on correct ones."""

import os
import re
import subprocess
import sys

import pytest
import upmem_builds
from upmem_builds import EXAMPLES, build_example, compile_dpu, compile_host

HOST = r"""
int main(void) {
  struct dpu_set_t set;
  DPU_ASSERT(dpu_alloc(2, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  dpu_launch(set, DPU_SYNCHRONOUS);
  puts("the host goes on");
  return 0;
}
"""
INCLUDES = """#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
BARRIER_INIT(together, NR_TASKLETS)
MUTEX_INIT(guard)
mutex_id_t nobody;
__mram_noinit int array[64];
__dma_aligned int buffer[NR_TASKLETS][8];
int counter, table[NR_TASKLETS];
volatile int length;
"""

# name: (body of main, code, words of the message); "HERE" marks the line that the message names.
FAULTS = {
    "unaligned MRAM": ("mram_read((char __mram_ptr *)array + 4, buffer[me()], 8); // HERE", "NB0820", "8 bytes"),
    "unaligned WRAM": ("mram_write((char *)buffer[me()] + 4, array + 4 * me(), 8); // HERE", "NB0820", "8 bytes"),
    "odd length": ("mram_read(array, buffer[me()], 12); // HERE", "NB0820", "12 bytes"),
    "no length": ("if (me() == 1) mram_read(array, mem_alloc(2048), length); // HERE", "NB0821", "0 bytes"),
    "too long": ("if (me() == 1) mram_read(array, mem_alloc(2048), 2056 + length); // HERE", "NB0821", "2056 bytes"),
    "MRAM as WRAM": ("length = *(volatile int *)&array[3] & 0; // HERE", "NB0822", "MRAM 0x800000c (array+0xc)"),
    "mutex": ("mutex_lock(nobody); // HERE\n  mutex_unlock(nobody);", "NB0823", "lock 0x0"),
    "race on WRAM": ("++counter; // HERE", "NB0824", "(counter), after"),
    "race on MRAM": (
        "buffer[me()][0] = me();\n  mram_write(buffer[me()], array, 8); // HERE",
        "NB0824",
        "MRAM 0x0 (array)",
    ),
    "race of neighbours": (
        "table[me()] = 1; // first\n  counter = table[(me() + 1) % NR_TASKLETS]; // HERE",
        "NB0824",
        "(table+0x",
    ),
    "race through C": ("array[5] = me(); // HERE", "NB0824", "(array+0x14)"),
    "null pointer": ("length = *(volatile int *)(length * 4); // HERE", "NB0825", "the null pointer"),
    "heap": (
        "char *p = mem_alloc(8);\n  if (me() == 1) p[4096] = 1; // HERE",
        "NB0825",
        "beyond the end of what mem_alloc",
    ),
    "buffer": (
        "if (me() == 1) mram_read(array, mem_alloc(8), 256); // HERE",
        "NB0825",
        "beyond the end of what mem_alloc",
    ),
    "MRAM": ("mram_read((__mram_ptr void *)(0x5000000u + length), buffer[me()], 8); // HERE", "NB0825", "MRAM ends at"),
    "stack": ("volatile char big[2000];\n  big[length] = 1;", "NB0806", "stack overflow"),
    "out of WRAM": ("*(volatile int *)(0x10000 + length) = 1; // HERE", "NB0806", "access out of WRAM"),
}


@pytest.fixture(scope="module")
def environment():
    return upmem_builds.environment()


def check(folder, environment):
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-m", "nearbank.cli", "upmem", "check", "--", "./bin/host_code"],
        cwd=folder,
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_of_fault_is_found_with_its_line(name, tmp_path, environment):
    body, code, words = FAULTS[name]
    source = f"{INCLUDES}int main(void) {{\n  {body}\n  return 0;\n}}\n"
    compile_host(tmp_path, environment, HOST)
    built = compile_dpu(tmp_path, environment, source, "-DNR_TASKLETS=4", "-w")
    assert built.returncode == 0, built.stderr
    result = check(tmp_path, environment)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "the host goes on" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("check: ")
    reports = [text for text in result.stderr.split("error[") if text.startswith(code)]
    assert reports, result.stderr
    assert re.search(r"DPU 0,? and 1 more", reports[0])
    assert words in reports[0]
    line = next((number for number, text in enumerate(source.splitlines(), 1) if "HERE" in text), None)
    if line:
        assert f"task.c:{line}" in reports[0]


def test_code_that_may_overflow_instruction_memory_is_found(tmp_path, environment):
    compile_host(tmp_path, environment, HOST)
    long = 'int main(void) { __asm__ volatile(".rept 4200\\nxor t0, t0, t1\\n.endr"); return 0; }\n'
    assert compile_dpu(tmp_path, environment, long).returncode == 0
    result = check(tmp_path, environment)
    assert result.returncode == 1
    message = r"""error\[NB0826\]: the program may not fit the DPU's instruction memory
  where:    bin/dpu_code
  expected: at most 4096 instructions
  actual:   about 42\d\d, counted in RV32IM code
  fix:      compile with -Os, or call fewer library functions
"""
    assert re.search(message, result.stderr)
    assert result.stdout == "the host goes on\ncheck: 1 findings in 1 launch\n"


CALLS = r"""
#include <mram.h>
volatile int zero;
__attribute__((noinline)) int inner(int n) {
  int *far = (int *)(0x20000 + zero);
  return far[n] + 1; // INNER
}
__attribute__((noinline)) int middle(int n) {
  return inner(n + zero) + 2; // MIDDLE
}
int main(void) {
  return middle(zero) + 3; // MAIN
}
"""


def test_a_fault_has_the_backtrace_of_its_tasklet(tmp_path, environment):
    compile_host(tmp_path, environment, HOST)
    assert compile_dpu(tmp_path, environment, CALLS, "-DNR_TASKLETS=2").returncode == 0
    result = check(tmp_path, environment)
    lines = {text.split("// ")[1]: number for number, text in enumerate(CALLS.splitlines(), 1) if "// " in text}
    places = re.findall(r"(\w+) at \S*task\.c:(\d+)|task\.c:(\d+)", result.stderr)
    found = [int(a or b) for _, a, b in places]
    assert found == [lines["INNER"], lines["MIDDLE"], lines["MAIN"]], result.stderr
    assert "tasklet " in result.stderr


SYNCHRONISED = """
  mutex_lock(guard);
  ++counter;
  mutex_unlock(guard);
  table[me()] = me();
  buffer[me()][0] = me();
  mram_write(buffer[me()], array + 2 * me(), 8);
  barrier_wait(&together);
  table[me()] += table[(me() + 1) % NR_TASKLETS] * 0 + counter;
  barrier_wait(&together);
  mram_read(array + 2 * ((me() + 1) % NR_TASKLETS), buffer[me()], 8);
  int *own = mem_alloc(64);
  for (int i = 0; i < 16; ++i)
    own[i] = table[i % NR_TASKLETS];
"""


def test_synchronised_accesses_are_no_race(tmp_path, environment):
    compile_host(tmp_path, environment, HOST)
    built = compile_dpu(
        tmp_path, environment, f"{INCLUDES}int main(void) {{{SYNCHRONISED}  return own[3] & 0;\n}}\n", "-DNR_TASKLETS=8"
    )
    assert built.returncode == 0, built.stderr
    result = check(tmp_path, environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "the host goes on\ncheck: nothing found in 1 launch\n"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if (path / "Makefile").exists()))
def test_nothing_is_found_in_the_examples(name, tmp_path, environment):
    result = check(build_example(name, tmp_path / name, environment, 2, 16), environment)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_program_that_is_not_there(tmp_path, environment):
    result = check(tmp_path, environment)
    assert result.returncode == 1
    assert "error[NB0811]: the program cannot be started" in result.stderr
