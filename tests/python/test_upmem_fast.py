# SPDX-License-Identifier: Apache-2.0
"""The engine fast against the engine exact: same results in the same cycles."""

import json
import shutil

import pytest
import upmem_builds
from nearbank import upmem_home
from test_upmem_programs import FAULT_HOST, FAULTS, compile_pair
from upmem_builds import EXAMPLES, build_example, compile_dpu, compile_host

NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "Makefile").exists())


@pytest.fixture(scope="module")
def environment():
    if not (upmem_home.folder() / "lib" / "libnearbank_translate.so").exists():
        pytest.skip("built without the compiler: no translator")
    return upmem_builds.environment()


def run(folder, environment, engine, **changes):
    return upmem_builds.run(folder, environment, NEARBANK_UPMEM=engine, NEARBANK_STATS=f"{engine}.json", **changes)


def launches(folder, engine):
    events = json.loads((folder / f"{engine}.json").read_text())["events"]
    return [event for event in events if event["what"] == "launch"]


def compare_launches(folder):
    for ours, theirs in zip(launches(folder, "fast"), launches(folder, "exact"), strict=True):
        for event in (ours, theirs):
            del event["startUs"]  # Has the time of the host's own instructions in it.
        assert ours == theirs


@pytest.mark.parametrize("tasklets", [1, 8, 11, 16, 24])
@pytest.mark.parametrize("name", NAMES)
def test_examples_take_the_same_time(name, tasklets, tmp_path, environment):
    folder = build_example(name, tmp_path / name, environment, 2, tasklets)
    for engine in ("exact", "fast"):
        result = run(folder, environment, engine)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "OK" in result.stdout
    compare_launches(folder)


KERNEL_HEAD = r"""
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <perfcounter.h>
#include <sem.h>
#include <stdint.h>
__host uint32_t results[64];
#define HEAP ((uint32_t)DPU_MRAM_HEAP_POINTER)
#define WORK(n) for (int w = 0; w < (n); w++) __asm__ volatile("")
BARRIER_INIT(everyone, NR_TASKLETS);
MUTEX_INIT(lock);
SEMAPHORE_INIT(places, 2);
"""
KERNELS = {
    "spin": """
volatile uint32_t turn;
int main(void) {
  for (uint32_t i = 0; i < 30; i++) {
    while (turn != i * NR_TASKLETS + me()) {
    }
    results[0] = results[0] * 3 + me();
    WORK(30);
    turn++;
  }
}
""",
    "mutex": """
int main(void) {
  for (int i = 0; i < 100; i++) {
    mutex_lock(lock);
    results[0]++;
    mutex_unlock(lock);
    WORK(i % 7 * me());
  }
}
""",
    "barrier": """
int main(void) {
  for (int i = 0; i < 50; i++) {
    WORK(5 * me());
    results[me()] += results[me() + 24];
    barrier_wait(&everyone);
    results[me() + 24] += results[(me() + 1) % NR_TASKLETS] + i;
    barrier_wait(&everyone);
  }
}
""",
    "semaphore": """
int main(void) {
  for (int i = 0; i < 20; i++) {
    sem_take(&places);
    WORK(100);
    sem_give(&places);
    WORK(10 * me());
  }
  results[me()] = me();
}
""",
    "handshake": """
int main(void) {
  for (int i = 0; i < 20; i++) {
    if (me() > 0)
      handshake_wait_for(me() - 1);
    results[0] = results[0] * 3 + me();
    WORK(30);
    if (me() + 1 < NR_TASKLETS)
      handshake_notify();
    barrier_wait(&everyone);
  }
}
""",
    "perfcounter": """
int main(void) {
  if (me() == 0)
    perfcounter_config(COUNT_CYCLES, true);
  barrier_wait(&everyone);
  perfcounter_t start = perfcounter_get();
  WORK(3000 + 100 * (int)me());
  // Counts of 16 cycles; the smaller part would be the engines' own.
  results[me()] = (perfcounter_get() - start) / 16 > 1000;
}
""",
    "dma of 8 bytes": """
__dma_aligned uint32_t buffer[NR_TASKLETS][2];
int main(void) {
  uint32_t at = me() * 1024;
  for (int i = 0; i < 300; i++) {
    mram_read((__mram_ptr void *)(HEAP + at), buffer[me()], 8);
    at = (at + (buffer[me()][0] & 0x7ff) * 8 + 8) & 0x3fff8;
    results[me()] += at;
  }
}
""",
    "dma of 1024 bytes": """
int main(void) {
  uint32_t *buffer = mem_alloc(1024);
  for (uint32_t at = me() * 1024; at < 0x20000; at += NR_TASKLETS * 1024) {
    mram_read((__mram_ptr void *)(HEAP + at), buffer, 1024);
    for (uint32_t i = me() & 1; i < 256; i += 1 + (at >> 10 & 3))
      buffer[i] += buffer[i ^ 1] * 3;
    mram_write(buffer, (__mram_ptr void *)(HEAP + 0x40000 + at), 1024);
  }
}
""",
    "variables in mram": """
__mram_noinit uint32_t table[1024];
int main(void) {
  for (uint32_t i = me(); i < 200; i += NR_TASKLETS)
    table[i] = i * i;
  barrier_wait(&everyone);
  for (uint32_t i = 0; i < 200; i++)
    results[me()] += table[i] ^ i;
}
""",
    "divide": """
volatile int32_t zero;
int main(void) {
  uint32_t sum = me() + 12345678;
  int64_t wide = 1234567890123ll + me();
  for (int i = 1; i < 60; i++) {
    sum += sum / (i * 7) + sum % 13;
    wide -= wide / i;
    sum ^= (uint32_t)wide * (uint32_t)i;
    sum += (uint32_t)((int32_t)sum / (i - 20)) + (uint32_t)((int32_t)sum % (i - 20));
  }
  int32_t least = INT32_MIN + zero;
  results[me()] = sum + (uint32_t)(least / (zero - 1)) + (uint32_t)(least % (zero - 1)) + 7u / (uint32_t)zero;
}
""",
    "float": """
int main(void) {
  float f = me() + 1.5f;
  double d = me() + 0.25;
  for (int i = 1; i < 40; i++) {
    f = f * 1.01f + 0.5f / i - (float)i;
    d = d * 1.5 - i / d;
  }
  results[me()] = (uint32_t)(int32_t)(f * 1000);
  results[me() + 24] = (uint32_t)(int64_t)d;
}
""",
    "calls through a table": """
typedef uint32_t (*step_t)(uint32_t);
static uint32_t first(uint32_t x) { return x * 3 + 1; }
static uint32_t second(uint32_t x) { return x >> 1; }
static uint32_t third(uint32_t x) {
  switch (x & 7) {
  case 0: return x + 5;
  case 1: return x * x;
  case 2: return x ^ 77;
  case 3: return x - 9;
  case 4: return x << 3;
  default: return ~x;
  }
}
step_t steps[3] = {first, second, third};
int main(void) {
  uint32_t x = me() + 3;
  for (int i = 0; i < 300; i++)
    x = steps[(x + i) % 3](x);
  results[me()] = x;
}
""",
}
# Runs the kernel on an MRAM heap of known content; prints a hash of what it leaves there and of its results.
KERNEL_HOST = r"""
#include <stdlib.h>
int main(void) {
  struct dpu_set_t set, dpu;
  uint32_t bytes = 1 << 20, results[64];
  unsigned char *heap = malloc(bytes);
  for (uint32_t i = 0; i < bytes; i++)
    heap[i] = (unsigned char)((i * 2654435761u) >> 13);
  DPU_ASSERT(dpu_alloc(1, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, heap, bytes, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu) {
    DPU_ASSERT(dpu_copy_from(dpu, "results", 0, results, sizeof results));
    DPU_ASSERT(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 0, heap, bytes));
  }
  unsigned long long hash = 14695981039346656037ull;
  for (int i = 0; i < 64; i++)
    hash = (hash ^ results[i]) * 1099511628211ull;
  for (uint32_t i = 0; i < bytes; i++)
    hash = (hash ^ heap[i]) * 1099511628211ull;
  printf("%llx\n", hash);
  return 0;
}
"""


@pytest.mark.parametrize("tasklets", [1, 8, 11, 16, 24])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compute_the_same_in_the_same_time(name, tasklets, tmp_path, environment):
    compile_host(tmp_path, environment, KERNEL_HOST)
    built = compile_dpu(tmp_path, environment, KERNEL_HEAD + KERNELS[name], f"-DNR_TASKLETS={tasklets}")
    assert built.returncode == 0, built.stderr
    exact, fast = (run(tmp_path, environment, engine) for engine in ("exact", "fast"))
    assert exact.returncode == 0, exact.stderr
    assert fast.stdout == exact.stdout
    compare_launches(tmp_path)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_explained_alike(name, tmp_path, environment):
    source, message, _ = FAULTS[name]
    assert compile_pair(tmp_path, environment, source, FAULT_HOST).returncode == 0
    exact, fast = (
        run(tmp_path, environment, engine, NEARBANK_TIMEOUT_CYCLES="1000000") for engine in ("exact", "fast")
    )
    assert message in fast.stderr
    assert (fast.returncode, fast.stdout) == (exact.returncode, exact.stdout)
    if name != "endless":  # Somewhere in the loop.
        assert fast.stderr == exact.stderr


def test_any_number_of_host_threads_gives_the_same_fast_run(tmp_path, environment):
    folder = build_example("locks", tmp_path / "locks", environment, 70, 16)
    seen = []
    for threads in ("1", "3"):
        # Translated anew and read back: the same code either way.
        run(folder, environment, "fast", NEARBANK_THREADS=threads, NEARBANK_HOME=str(tmp_path / "home"))
        seen.append([{**launch, "startUs": 0} for launch in launches(folder, "fast")])
    assert seen[0] == seen[1]
    assert list((tmp_path / "home" / "upmem-native").glob("*.o"))


def test_the_engine_says_when_it_has_no_translator(tmp_path, environment):
    folder = build_example("vector_add", tmp_path / "x", environment, 1, 2)
    home = shutil.copytree(upmem_home.folder(), tmp_path / "home")
    (home / "lib" / "libnearbank_translate.so").unlink()
    result = run(folder, environment, "fast", LD_LIBRARY_PATH=str(home / "lib"))
    assert result.returncode != 0
    assert "error[NB0812]: the engine fast has no translator" in result.stderr
    assert "NEARBANK_UPMEM=exact" in result.stderr
    assert run(folder, environment, "exact", LD_LIBRARY_PATH=str(home / "lib")).returncode == 0


@pytest.mark.parametrize("tasklets", [8, 16])
@pytest.mark.parametrize("name", ["mutex", "barrier", "dma of 1024 bytes", "divide"])
def test_whole_turns_of_exact_are_its_steps(name, tasklets, tmp_path, environment):
    compile_host(tmp_path, environment, KERNEL_HOST)
    assert compile_dpu(tmp_path, environment, KERNEL_HEAD + KERNELS[name], f"-DNR_TASKLETS={tasklets}").returncode == 0
    seen = []
    # The checker watches each instruction, so no turn is taken at once.
    for changes in ({}, {"NEARBANK_UPMEM_CHECK": str(tmp_path / "check.json")}):
        printed = run(tmp_path, environment, "exact", **changes).stdout
        seen.append((printed, [{**launch, "startUs": 0} for launch in launches(tmp_path, "exact")]))
    assert seen[0] == seen[1]
