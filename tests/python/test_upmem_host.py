# SPDX-License-Identifier: Apache-2.0
"""The host library: asynchronous jobs, callbacks, scatter-gather, several programs, C++, and surviving bad input."""

import json
import subprocess

import pytest
import upmem_builds
from upmem_builds import compile_dpu, compile_host, run

ADD = r"""
#include <defs.h>
#include <mram.h>
__host int step, factor = 1, seen[2];
__mram_noinit int values[64];
int main(void) {
  if (step < 0)
    *(volatile int *)0x20000 = 1;
  __dma_aligned int block[64];
  mram_read(values, block, 256);
  for (int i = 0; i < 64; ++i)
    block[i] += step * factor;
  mram_write(block, values, 256);
  seen[0] += 1;
  return 0;
}
"""
FEATURES = r"""
#include <dpu_probe.h>
#include <stdlib.h>
#include <time.h>
static int failures;
#define CHECK(condition) \
  do { if (!(condition)) { printf("line %d: %s\n", __LINE__, #condition); ++failures; } } while (0)
static int data[70][64], back[70][64], calls;
static dpu_error_t count_ranks(struct dpu_set_t rank, uint32_t id, void *total) {
  uint32_t dpus;
  dpu_get_nr_dpus(rank, &dpus);
  *(int *)total += dpus * 100 + id;
  ++calls;
  return DPU_OK;
}
struct halves { uint32_t length, blocks; };
static bool two_blocks(struct sg_block_info *out, uint32_t dpu, uint32_t block, void *arguments) {
  struct halves *halves = arguments;
  out->addr = (uint8_t *)(data[dpu] + 32 * (1 - block % 2));
  out->length = block < 2 ? halves->length : 0;
  return block < halves->blocks;
}
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}
int main(void) {
  struct dpu_set_t set, rank, dpu;
  struct dpu_program_t *program;
  struct dpu_symbol_t symbol;
  struct dpu_probe_t probe;
  uint32_t i, count;
  bool done, fault;
  DPU_ASSERT(dpu_alloc(70, " backend=hw, sgXferEnable=true , sgXferMaxBlocksPerDpu=3", &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", &program));
  DPU_ASSERT(dpu_get_symbol(program, "values", &symbol));
  CHECK(symbol.size == 256);
  CHECK(dpu_get_symbol(program, "none", &symbol) == DPU_ERR_UNKNOWN_SYMBOL);
  DPU_ASSERT(dpu_get_symbol(program, "values", &symbol));
  DPU_ASSERT(dpu_get_nr_ranks(set, &count));
  CHECK(count == 2);
  count = 0;
  DPU_RANK_FOREACH(set, rank) ++count;
  CHECK(count == 2);

  // One step a DPU, values by blocks, an asynchronous launch.
  DPU_FOREACH(set, dpu, i) {
    for (int k = 0; k < 64; ++k)
      data[i][k] = 1000 * i + k;
    DPU_ASSERT(dpu_copy_to(dpu, "step", 0, &(int){i}, 4));
  }
  struct halves halves = {128, 2};
  get_block_t blocks = {.f = two_blocks, .args = &halves, .args_size = sizeof halves};
  DPU_ASSERT(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_DEFAULT));
  // What is refused moves nothing: blocks of less, of more, too many of them, and other places than MRAM of ranks.
  for (halves.length = 64; halves.length <= 192; halves.length += 128)
    CHECK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_DEFAULT) ==
          DPU_ERR_SG_LENGTH_MISMATCH);
  CHECK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_DISABLE_LENGTH_CHECK) ==
        DPU_ERR_SG_LENGTH_MISMATCH);
  halves = (struct halves){64, 4};
  CHECK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 128, &blocks, DPU_SG_XFER_DEFAULT) ==
        DPU_ERR_SG_TOO_MANY_BLOCKS);
  CHECK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "seen", 0, 8, &blocks, DPU_SG_XFER_DEFAULT) ==
        DPU_ERR_SG_NOT_MRAM_SYMBOL);
  CHECK(dpu_push_sg_xfer(set, (dpu_xfer_t)7, "values", 0, 8, &blocks, DPU_SG_XFER_DEFAULT) ==
        DPU_ERR_INVALID_MEMORY_TRANSFER);
  halves = (struct halves){128, 3};
  DPU_RANK_FOREACH(set, rank, i) if (i == 1) {
    DPU_FOREACH(rank, dpu)
      CHECK(dpu_push_sg_xfer(dpu, DPU_XFER_TO_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_DEFAULT) == DPU_ERR_INTERNAL);
    // The blocks of one rank are those of its DPUs' numbers in the set; then back, block by block.
    DPU_ASSERT(dpu_push_sg_xfer(rank, DPU_XFER_TO_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_ASYNC));
    DPU_ASSERT(dpu_sync(rank));
    for (int k = 0; k < 64; ++k)
      data[69][k] = -1;
    DPU_ASSERT(dpu_push_sg_xfer(rank, DPU_XFER_FROM_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_DEFAULT));
    CHECK(data[69][0] == 69000 && data[69][63] == 69063);
  }
  struct dpu_set_t plain;
  DPU_ASSERT(dpu_alloc(1, NULL, &plain));
  DPU_ASSERT(dpu_load(plain, "bin/dpu_code", NULL));
  CHECK(dpu_push_sg_xfer(plain, DPU_XFER_TO_DPU, "values", 0, 256, &blocks, DPU_SG_XFER_DEFAULT) ==
        DPU_ERR_SG_NOT_ACTIVATED);
  DPU_ASSERT(dpu_free(plain));
  DPU_ASSERT(dpu_probe_init("kernel", &probe));
  double started = now();
  DPU_ASSERT(dpu_probe_start(&probe));
  double begin = now();
  DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
  // Each question takes a microsecond of simulated time, so that it is answered at last.
  do {
    DPU_ASSERT(dpu_status(set, &done, &fault));
    CHECK(!fault);
  } while (!done);
  CHECK(now() - begin > 1.5e-4);
  int total = 0;
  DPU_ASSERT(dpu_callback(set, count_ranks, &total, DPU_CALLBACK_ASYNC));
  DPU_ASSERT(dpu_sync(set));
  CHECK(calls == 2 && total == 7001);
  DPU_ASSERT(dpu_status(set, &done, &fault));
  CHECK(done && !fault);
  DPU_ASSERT(dpu_probe_stop(&probe));
  double seconds, joules;
  DPU_ASSERT(dpu_probe_get(&probe, DPU_TIME, DPU_ACCUMULATE, &seconds));
  DPU_ASSERT(dpu_probe_get(&probe, DPU_ENERGY, DPU_ACCUMULATE, &joules));
  CHECK(seconds > 1.5e-4 && seconds <= now() - started && joules > 0);
  DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, back[i]));
  DPU_ASSERT(dpu_push_xfer_symbol(set, DPU_XFER_FROM_DPU, symbol, 0, 256, DPU_XFER_DEFAULT));
  for (i = 0; i < 70; ++i)
    for (int k = 0; k < 64; ++k)
      CHECK(back[i][k] == 1000 * (int)i + (k + 32) % 64 + (int)i);

  // Without the check of lengths the rest is zeroed.
  halves = (struct halves){64, 1};
  DPU_ASSERT(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 128, &blocks, DPU_SG_XFER_DISABLE_LENGTH_CHECK));
  DPU_FOREACH(set, dpu, i) {
    int part[34];
    DPU_ASSERT(dpu_copy_from(dpu, "values", 0, part, sizeof part));
    CHECK(part[15] == data[i][47] && part[16] == 0 && part[31] == 0 && part[33] == back[i][33]);
    DPU_ASSERT(dpu_copy_to(dpu, "values", 0, back[i], 256));
  }

  // A DPU in fault: the others keep what they computed, and everything goes on.
  DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_copy_to(dpu, "step", 0, &(int){i == 3 ? -1 : 1}, 4));
  CHECK(dpu_launch(set, DPU_SYNCHRONOUS) == DPU_ERR_DPU_FAULT);
  CHECK(dpu_launch(set, DPU_ASYNCHRONOUS) == DPU_OK);
  CHECK(dpu_sync(set) == DPU_ERR_DPU_FAULT);
  DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, data[i]));
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "values", 0, 256, DPU_XFER_DEFAULT));
  for (i = 0; i < 70; ++i)
    CHECK(data[i][9] == back[i][9] + (i == 3 ? 0 : 2));
  DPU_ASSERT(dpu_broadcast_to(set, "step", 0, &(int){5}, 4, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

  // Another program in one rank.
  DPU_RANK_FOREACH(set, rank, i) if (i == 1) DPU_ASSERT(dpu_load(rank, "bin/other", NULL));
  CHECK(dpu_broadcast_to(set, "step", 0, &(int){5}, 4, DPU_XFER_DEFAULT) == DPU_ERR_DIFFERENT_DPU_PROGRAMS);
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

  // Wrong lengths and places.
  DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, data[i]));
  DPU_RANK_FOREACH(set, rank, i) if (i == 0) {
    CHECK(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "values", 0, 264, DPU_XFER_DEFAULT) == DPU_ERR_INVALID_SYMBOL_ACCESS);
    CHECK(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "values", 8, 256, DPU_XFER_DEFAULT) == DPU_ERR_INVALID_SYMBOL_ACCESS);
    CHECK(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "values", 4, 8, DPU_XFER_DEFAULT) == DPU_ERR_INVALID_MRAM_ACCESS);
    CHECK(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "values", 0, 12, DPU_XFER_DEFAULT) == DPU_ERR_INVALID_MRAM_ACCESS);
    CHECK(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "seen", 0, 6, DPU_XFER_DEFAULT) == DPU_ERR_INVALID_WRAM_ACCESS);
  }
  DPU_ASSERT(dpu_free(set));
  printf("%d failures\n", failures);
  return failures != 0;
}
"""
CPP = r"""
#include <dpu>
#include <iostream>
int main() try {
  auto set = dpu::DpuSet::allocate(3);
  set.load("bin/dpu_code");
  std::vector<std::vector<int>> values(3, std::vector<int>(64, 7)), back(3, std::vector<int>(64));
  set.copy("values", values);
  set.copy("step", std::vector<int>{4});
  set.exec();
  set.copy(back, "values");
  std::cout << back[2][63] << " " << set.dpus().size() << " " << set.ranks().size() << "\n";
  set.copy("missing", std::vector<int>{4});
} catch (const dpu::DpuError &error) {
  std::cout << error.what() << "\n";
}
"""


@pytest.fixture(scope="module")
def environment():
    return upmem_builds.environment()


def test_the_host_library_does_what_the_sdk_does(tmp_path, environment):
    compile_host(tmp_path, environment, FEATURES)
    other = ADD.replace("step * factor", "1")
    for name, source in (("other", other), ("dpu_code", ADD)):
        built = compile_dpu(tmp_path, environment, source, "-DSTACK_SIZE_DEFAULT=2048", name=name)
        assert built.returncode == 0, built.stderr
    result = run(tmp_path, environment, NEARBANK_STATS="run.json")
    assert result.stdout == "0 failures\n", result.stdout + result.stderr
    assert "where:    DPU 3\n" in result.stderr
    events = json.loads((tmp_path / "run.json").read_text())["events"]
    assert [event["dpus"] for event in events if event["what"] == "launch"] == [70] * 5


def test_cpp_has_sets_as_objects(tmp_path, environment):
    assert compile_dpu(tmp_path, environment, ADD, "-DSTACK_SIZE_DEFAULT=2048").returncode == 0
    (tmp_path / "app.cpp").write_text(CPP)
    command = "g++ -std=c++17 -O1 app.cpp -o bin/host_code `dpu-pkg-config --cflags --libs dpu`"
    subprocess.run(command, shell=True, cwd=tmp_path, env=environment, check=True)
    assert run(tmp_path, environment).stdout == "11 3 1\nunknown symbol\n"


LOAD = r"""
int main(int argc, char **argv) {
  struct dpu_set_t set;
  (void)argc;
  dpu_error_t status = dpu_alloc(atoi(argv[1]), NULL, &set);
  if (status == DPU_OK)
    status = dpu_load(set, argv[2], NULL);
  if (status == DPU_OK)
    status = dpu_launch(set, DPU_SYNCHRONOUS);
  printf("%s\n", dpu_error_to_string(status));
  return 0;
}
"""


@pytest.fixture(scope="module")
def loader(tmp_path_factory, environment):
    folder = tmp_path_factory.mktemp("loader")
    compile_host(folder, environment, f"#include <stdlib.h>\n{LOAD}")
    compile_dpu(folder, environment, "int main(void) { return 0; }\n")
    long = 'int main(void) { __asm__ volatile(".rept 6200\\nxor t0, t0, t1\\n.endr"); return 0; }\n'
    assert compile_dpu(folder, environment, long, name="long").returncode == 0
    (folder / "bin" / "cut").write_bytes((folder / "bin" / "dpu_code").read_bytes()[:600])
    (folder / "bin" / "empty").write_bytes(b"")
    return folder


@pytest.mark.parametrize(
    ("machine", "dpus", "program", "outcome", "words"),
    [
        ("upmem-1", 1, "bin/dpu_code", "success", ""),
        ("upmem-97", 97, "bin/dpu_code", "success", ""),
        ("upmem-4096", 4096, "bin/dpu_code", "success", ""),
        ("upmem-97", 98, "bin/dpu_code", "allocation", "NB0804"),
        ("upmem-0", 1, "bin/dpu_code", "system", "NB0101"),
        ("upmem", 1, "bin/nothing", "no such elf file", "No such file or directory"),
        ("upmem", 1, "bin/host_code", "invalid", "binaries of the SDK do not run here"),
        ("upmem", 1, "bin/cut", "invalid", "a truncated one"),
        ("upmem", 1, "bin/empty", "invalid", "something else"),
        ("upmem", 1, "bin/long", "invalid", "IRAM overflow"),
    ],
)
def test_what_cannot_be_loaded_is_explained(machine, dpus, program, outcome, words, loader, environment):
    result = run(loader, environment, str(dpus), program, NEARBANK_MACHINE=machine)
    assert result.returncode == 0
    assert outcome in result.stdout
    assert words in result.stderr


def test_wrong_settings_are_explained(loader, environment):
    for changes, words in (
        ({"NEARBANK_UPMEM": "quick"}, "error[NB0802]: unknown engine\n  where:    NEARBANK_UPMEM\n"),
        (
            {"UPMEM_PROFILE_BASE": "nonsense"},
            "error[NB0803]: profile cannot be parsed\n  where:    UPMEM_PROFILE_BASE\n",
        ),
        ({"NEARBANK_STATS": "/nowhere/run.json"}, "error[NB0805]: statistics cannot be written\n"),
    ):
        assert words in run(loader, environment, "1", "bin/dpu_code", **changes).stderr
    assert run(loader, environment, "1", "bin/dpu_code", UPMEM_PROFILE_BASE="backend=hw,x=1").stdout == "success\n"


def test_mram_overflow_is_an_error_of_the_linker(tmp_path, environment):
    source = "#include <mram.h>\n__mram_noinit char big[67108872]; int main(void) { return big[3]; }\n"
    built = compile_dpu(tmp_path, environment, source)
    assert built.returncode != 0
    assert "region 'mram'" in built.stderr
