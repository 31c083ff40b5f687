# SPDX-License-Identifier: Apache-2.0
"""Simulated times of small programs against what was published of real DPUs at 350 MHz.

PrIM is IEEE Access 2022, arXiv:2105.03814: integer throughput in figure 4, WRAM in figure 5, DMA in section 3.2.
"""

import json

import pytest
import upmem_builds
from upmem_builds import compile_dpu, compile_host, run

KERNEL = r"""
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>
#define COUNT (1024 / sizeof(T))
BARRIER_INIT(together, NR_TASKLETS)
__host uint32_t cycles[24];
__host uint32_t scalar;
__dma_aligned T first[NR_TASKLETS][COUNT], second[NR_TASKLETS][COUNT];
static void __attribute__((noinline)) work(T *a, T *b, T s, uint32_t m) { WORK }
int main(void) {
  if (me() == 0)
    perfcounter_config(COUNT_CYCLES, true);
  barrier_wait(&together);
  uint32_t start = perfcounter_get();
  for (int round = 0; round < ROUNDS; ++round)
    work(first[me()], second[me()], scalar, me() << 12);
  cycles[me()] = perfcounter_get() - start;
  return 0;
}
"""
HOST = r"""
int main(void) {
  struct dpu_set_t set, dpu;
  uint32_t scalar = 3, cycles[24], most = 0;
  DPU_ASSERT(dpu_alloc(1, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_broadcast_to(set, "scalar", 0, &scalar, 4, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu)
    DPU_ASSERT(dpu_copy_from(dpu, "cycles", 0, cycles, sizeof cycles));
  for (int i = 0; i < 24; ++i)
    most = cycles[i] > most ? cycles[i] : most;
  printf("%u\n", most);
  return 0;
}
"""
MHZ = 350
ROUNDS = 32


@pytest.fixture(scope="module")
def cycles_of(tmp_path_factory):
    """Return a function that compiles a loop and says how many cycles ROUNDS of it took."""
    folder = tmp_path_factory.mktemp("microbenchmark")
    environment = upmem_builds.environment()
    compile_host(folder, environment, HOST)

    def cycles(work, kind, tasklets):
        options = [f"-DNR_TASKLETS={tasklets}", f"-DT={kind}", f"-DROUNDS={ROUNDS}", f"-DWORK={work}"]
        built = compile_dpu(folder, environment, KERNEL, *options)
        assert built.returncode == 0, built.stderr
        return int(run(folder, environment).stdout)

    return cycles


def update(operator):
    return f"for (uint32_t i = 0; i < COUNT; ++i) {{ T t = a[i]; t {operator}= s; a[i] = t; }}"


@pytest.mark.parametrize(
    ("operator", "kind", "mops"),
    [("+", "int32_t", 58.56), ("-", "int32_t", 58.45), ("+", "int64_t", 50.16), ("-", "int64_t", 50.16)],
)
def test_integer_throughput_is_the_published(operator, kind, mops, cycles_of):
    operations = 16 * ROUNDS * 1024 // int(kind[3:5]) * 8
    assert operations / cycles_of(update(operator), kind, 16) * MHZ == pytest.approx(mops, rel=0.05)


@pytest.mark.parametrize("tasklets", [1, 2, 4, 8, 10, 11, 12, 16, 24])
def test_throughput_grows_to_11_tasklets(tasklets, cycles_of):
    operations = tasklets * ROUNDS * 256
    # PrIM, figure 4: linear up to 11 tasklets, constant from there.
    assert operations / cycles_of(update("+"), "int32_t", tasklets) * MHZ == pytest.approx(
        58.56 * min(tasklets, 11) / 11, rel=0.05
    )


@pytest.mark.parametrize(("value", "accessed", "mbs"), [("a[i]", 16, 2818.98), ("a[i] + b[i]", 24, 1682.46)])
def test_wram_bandwidth_is_the_published(value, accessed, mbs, cycles_of):
    work = f'_Pragma("unroll") for (uint32_t i = 0; i < COUNT; ++i) b[i] = {value};'
    moved = 16 * ROUNDS * 128 * accessed
    assert moved / cycles_of(work, "int64_t", 16) * MHZ == pytest.approx(mbs, rel=0.05)


def one_way(call, size):
    wram, mram = "(uint8_t *)a", "(__mram_ptr void *)m"
    return f"mram_read({mram}, {wram}, {size});" if call == "read" else f"mram_write({wram}, {mram}, {size});"


@pytest.mark.parametrize("size", [8, 16, 32, 64, 128, 256, 512, 1024, 2048])
@pytest.mark.parametrize(("call", "fixed"), [("read", 77), ("write", 61)])
def test_dma_latency_is_the_published(call, fixed, size, cycles_of):
    once, twice = (cycles_of(one_way(call, size) * times, "uint64_t", 1) for times in (1, 2))
    assert (twice - once) / ROUNDS == pytest.approx(fixed + size / 2, rel=0.05)


@pytest.mark.parametrize(
    ("work", "moved", "mbs"),
    [
        (one_way("read", 2048), 2048, 628.23),
        (one_way("write", 2048), 2048, 633.22),
        (one_way("read", 1024) + one_way("write", 1024), 2048, 624.02),  # COPY-DMA
        (one_way("read", 8) + one_way("write", 8), 16, 72.58),  # strided and random accesses
    ],
)
def test_dma_bandwidth_is_the_published(work, moved, mbs, cycles_of):
    # Several transfers a round, so that the loop around them does not count.
    assert 16 * ROUNDS * 4 * moved / cycles_of(work * 4, "uint64_t", 16) * MHZ == pytest.approx(mbs, rel=0.05)


#: us by bytes a DPU and ranks of 64 DPUs, measured on an UPMEM server in November 2024 (github.com/benbii/downmem).
TRANSFERS = {
    ("to", 512): {1: 80, 5: 123, 12: 224, 20: 283, 36: 438},
    ("to", 8192): {1: 155, 5: 463, 12: 943, 20: 1004, 36: 1541},
    ("to", 65536): {1: 879, 5: 2610, 12: 4844, 20: 5241, 36: 3847},
    ("from", 512): {1: 196, 5: 259, 12: 444, 20: 623, 36: 827},
    ("from", 8192): {1: 364, 5: 878, 12: 2032, 20: 2254, 36: 3683},
    ("from", 65536): {1: 2317, 5: 6160, 12: 14062, 20: 12951, 36: 14375},
}
TRANSFER_HOST = r"""
#include <stdlib.h>
static char buffer[65536];
int main(int argc, char **argv) {
  struct dpu_set_t set;
  (void)argc;
  DPU_ASSERT(dpu_alloc_ranks(atoi(argv[1]), NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  for (int bytes = 512; bytes <= 65536; bytes *= bytes == 512 ? 16 : 8)
    for (int way = 0; way < 2; ++way) {
      DPU_ASSERT(dpu_prepare_xfer(set, buffer));
      DPU_ASSERT(dpu_push_xfer(set, way ? DPU_XFER_FROM_DPU : DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, bytes,
                               DPU_XFER_DEFAULT));
    }
  return 0;
}
"""


def test_host_transfers_are_the_measured(tmp_path):
    environment = upmem_builds.environment()
    compile_host(tmp_path, environment, TRANSFER_HOST)
    compile_dpu(tmp_path, environment, "#include <mram.h>\nint main(void) { return (int)DPU_MRAM_HEAP_POINTER & 0; }\n")
    errors = []
    for ranks in (1, 5, 12, 20, 36):
        assert run(tmp_path, environment, str(ranks), NEARBANK_STATS="run.json").returncode == 0
        for event in json.loads((tmp_path / "run.json").read_text())["events"]:
            if event["what"] in ("to", "from"):
                errors.append(abs(event["us"] / TRANSFERS[event["what"], event["bytesPerDpu"]][ranks] - 1))
    assert len(errors) == 30
    # Between the ranks of the machine file the measured times go up and down, by a half at worst.
    assert sum(error <= 0.15 for error in errors) >= 0.85 * len(errors)
    assert sum(errors) / len(errors) < 0.1
