# SPDX-License-Identifier: Apache-2.0
"""What dpu-upmem-dpurte-clang makes of C: accesses to MRAM variables, separate compilation, wrong options."""

import subprocess

import pytest
import upmem_builds
from upmem_builds import compile_dpu, compile_host, run

MRAM = r"""
#include <defs.h>
#include <mram.h>
#include <stdint.h>
struct record { int32_t values[16]; int8_t small; };
struct record local;
__mram_noinit struct record records[3];
__mram_noinit uint16_t shorts[4];
__mram uint64_t wide[2] = {0x123456789abcdefull, 7};
__mram_noinit uint32_t first_is_far[4];
__host uint32_t results[8];
int main(void) {
  for (int i = 0; i < 16; ++i)
    local.values[i] = i - 8;
  local.small = -3;
  records[1] = local;
  records[2] = records[1];
  records[2].values[5] -= 100;
  shorts[1] = 0xfffe;
  wide[1] += wide[0];
  struct record back = records[2];
  results[0] = back.values[5];
  results[1] = records[2].small;
  results[2] = shorts[1];
  results[3] = (int16_t)shorts[1];
  results[4] = wide[1] >> 32;
  results[5] = records[1].values[5];
  // The address of MRAM taken for one of WRAM: its low bits count.
  first_is_far[0] = 5;
  results[6] = *(volatile uint32_t *)((uint32_t)first_is_far & 0x08000000);
  return 0;
}
"""
PRINT = r"""
int main(void) {
  struct dpu_set_t set, dpu;
  int32_t results[8];
  DPU_ASSERT(dpu_alloc(1, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu)
    DPU_ASSERT(dpu_copy_from(dpu, "results", 0, results, sizeof results));
  for (int i = 0; i < 8; ++i)
    printf("%d ", results[i]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def environment():
    return upmem_builds.environment()


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_variables_in_mram_are_read_and_written_from_c(level, tmp_path, environment):
    compile_host(tmp_path, environment, PRINT)
    built = compile_dpu(tmp_path, environment, MRAM, level)
    assert built.returncode == 0, built.stderr
    expected = [-103, -3, 65534, -2, 0x1234567, -3, 0, 0]
    assert run(tmp_path, environment).stdout.split() == list(map(str, expected))


def test_files_are_compiled_one_by_one_and_linked(tmp_path, environment):
    compile_host(tmp_path, environment, PRINT)
    (tmp_path / "a.c").write_text(
        "extern int other(void);\n__attribute__((aligned(8))) int x; int main(void) { return other(); }\n"
    )
    (tmp_path / "b.c").write_text(
        "#include <attributes.h>\n__host int results[8];\nint other(void) { results[2] = NUMBER; return 0; }\n"
    )

    def clang(*options):
        return subprocess.run(
            ["dpu-upmem-dpurte-clang", *options], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    assert clang("-O2", "-c", "a.c").returncode == 0
    assert clang("-O2", "-D", "NUMBER=42", "-c", "b.c", "-ob.o").returncode == 0
    assert clang("-DNR_TASKLETS=3", "a.o", "b.o", "-o", "bin/dpu_code").returncode == 0
    assert run(tmp_path, environment).stdout.split()[2] == "42"
    assert "define" in clang("-O2", "-S", "-emit-llvm", "a.c", "-o", "-").stdout
    assert "int other" in clang("-E", "a.c").stdout


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("int main(void) { return 0 }\n", [], "error: expected ';'"),
        ("int main(void) { return missing(); }\n", ["-Wno-implicit-function-declaration"], "undefined symbol: missing"),
        ("int main(void) { return 0; }\n", ["-DNR_TASKLETS=25"], "number of tasklets is out of range"),
        ("int big[20000]; int main(void) { return big[3]; }\n", [], "region 'wram'"),
        ("int main(void) { return 0; }\n", ["-DNR_TASKLETS=24", "-DSTACK_SIZE_DEFAULT=4096"], "'wram'"),
    ],
)
def test_what_cannot_be_built_is_an_error(source, options, message, tmp_path, environment):
    built = compile_dpu(tmp_path, environment, source, *options)
    assert built.returncode != 0
    assert message in built.stderr
    assert not (tmp_path / "bin" / "dpu_code").exists()


def test_the_mathematical_library_is_there(tmp_path, environment):
    compile_host(tmp_path, environment, PRINT)
    source = (
        "#include <math.h>\n#include <attributes.h>\n__host int results[8];\nvolatile float x = 2.0f;\n"
        "int main(void) { results[0] = (int)(1000 * sqrtf(x)); results[1] = (int)(1000 * expf(x)); return 0; }\n"
    )
    built = compile_dpu(tmp_path, environment, source, "-lm")
    assert built.returncode == 0, built.stderr
    assert run(tmp_path, environment).stdout.split()[:2] == ["1414", "7389"]
