# SPDX-License-Identifier: Apache-2.0
"""The device library, each part against what it should give: allocators, readers, MRAM, counters, instructions."""

import pytest
import upmem_builds
from upmem_builds import compile_dpu, compile_host, run

HEAD = r"""
#include <alloc.h>
#include <assert.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <built_ins.h>
#include <defs.h>
#include <errno.h>
#include <handshake.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <mutex.h>
#include <perfcounter.h>
#include <sem.h>
#include <seqread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
BARRIER_INIT(together, NR_TASKLETS)
ATOMIC_BIT_INIT(bit);
MUTEX_INIT(guard)
SEMAPHORE_INIT(none, 0)
__mram_noinit uint8_t bytes[4096];
__host uint32_t results[24];
uint32_t shared;
static void add(int *value, void *amount) { *value += *(int *)amount; }
static void flip(uint8_t *value, void *mask) { *value ^= *(uint8_t *)mask; }
"""
HOST = r"""
int main(void) {
  struct dpu_set_t set, dpu;
  uint8_t bytes[4096];
  uint32_t results[24];
  for (int i = 0; i < 4096; ++i)
    bytes[i] = i * 7 + i / 256;
  DPU_ASSERT(dpu_alloc(1, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_broadcast_to(set, "bytes", 0, bytes, sizeof bytes, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_ASSERT(dpu_log_read(set, stdout));
  DPU_FOREACH(set, dpu)
    DPU_ASSERT(dpu_copy_from(dpu, "results", 0, results, sizeof results));
  for (int i = 0; i < 24; ++i)
    printf("%u ", results[i]);
  return 0;
}
"""

# name: (tasklets, body of main; a failed assertion is a fault, and results are compared)
CASES = {
    "mem_alloc gives memory of its own, on 8 bytes": (
        8,
        """
        uint8_t *own = mem_alloc(13 + me());
        assert(((uint32_t)own & 7) == 0);
        memset(own, me(), 13 + me());
        barrier_wait(&together);
        for (unsigned i = 0; i < 13 + me(); ++i)
          assert(own[i] == me());
        """,
        [],
    ),
    "mem_reset begins again": (
        1,
        """
        void *first = mem_alloc(64);
        mem_alloc(64);
        mem_reset();
        results[0] = mem_alloc(8) == first;
        """,
        [1],
    ),
    "blocks of one size run out and come back": (
        1,
        """
        fsb_allocator_t blocks = fsb_alloc(20, 3);
        void *a = fsb_get(blocks), *b = fsb_get(blocks), *c = fsb_get(blocks);
        assert(a && b && c && a != b && b != c && a != c);
        assert((uint8_t *)a + 24 == b || (uint8_t *)b + 24 == a);
        assert(fsb_get(blocks) == NULL);
        fsb_free(blocks, b);
        results[0] = fsb_get(blocks) == b;
        """,
        [1],
    ),
    "buddies split and merge": (
        1,
        """
        buddy_init(1024);
        uint8_t *parts[32];
        for (int i = 0; i < 32; ++i)
          assert((parts[i] = buddy_alloc(32)));
        errno = 0;
        assert(buddy_alloc(32) == NULL && errno == ENOMEM);
        for (int i = 0; i < 32; ++i)
          buddy_free(parts[i]);
        uint8_t *whole = buddy_alloc(1024);
        assert(whole);
        buddy_free(whole);
        uint8_t *small = buddy_alloc(40);
        small[39] = 77;
        uint8_t *large = buddy_realloc(small, 300);
        results[0] = large[39];
        """,
        [77],
    ),
    "a sequential reader follows pages": (
        4,
        """
        seqreader_t reader;
        uint8_t *at = seqread_init(seqread_alloc(), (__mram_ptr void *)(bytes + 3 + me()), &reader);
        unsigned place = 3 + me();
        for (int i = 0; i < 900; ++i, ++place) {
          assert(*at == (uint8_t)(place * 7 + place / 256));
          assert((uint32_t)seqread_tell(at, &reader) == (uint32_t)(bytes + place));
          at = seqread_get(at, 1, &reader);
        }
        at = seqread_seek((__mram_ptr void *)(bytes + 2000), &reader);
        results[me()] = *at;
        """,
        [(2000 * 7 + 2000 // 256) % 256] * 4,
    ),
    "MRAM is read and written at any address": (
        4,
        """
        __dma_aligned uint8_t buffer[128], back[128];
        for (unsigned offset = 0; offset < 9; ++offset)
          for (unsigned size = 1; size < 40; size += 5) {
            uint8_t *data = mram_read_unaligned(bytes + offset, buffer, size);
            for (unsigned i = 0; i < size; ++i)
              assert(data[i] == (uint8_t)((offset + i) * 7 + (offset + i) / 256));
          }
        for (int i = 0; i < 11; ++i)
          buffer[i] = 16 * me() + i;
        mram_write_unaligned(buffer, bytes + 1001 + 11 * me(), 11);
        barrier_wait(&together);
        uint8_t *data = mram_read_unaligned(bytes + 1000, back, 46);
        for (int i = 0; i < 44; ++i)
          assert(data[1 + i] == 16 * (i / 11) + i % 11);
        assert(data[0] == (uint8_t)(1000 * 7 + 1000 / 256) && data[45] == (uint8_t)(1045 * 7 + 1045 / 256));
        """,
        [],
    ),
    "parts of a double word of MRAM change without loss": (
        8,
        """
        if (me() == 0)
          mram_write_int_atomic(bytes + 12, 5);
        barrier_wait(&together);
        int amount = me();
        uint8_t mask = 1 << me();
        for (int i = 0; i < 5; ++i)
          mram_update_int_atomic(bytes + 12, add, &amount);
        mram_update_byte_atomic(bytes + 9, flip, &mask);
        barrier_wait(&together);
        results[me()] = *(__mram_ptr uint32_t *)(bytes + 12);
        if (me() == 7)
          results[7] = bytes[9] ^ 63;
        """,
        [5 + 5 * 28] * 7 + [255],
    ),
    "a bit, a mutex and its trial exclude": (
        11,
        """
        for (int i = 0; i < 20; ++i) {
          ATOMIC_BIT_ACQUIRE(bit);
          shared += 1;
          ATOMIC_BIT_RELEASE(bit);
          while (!mutex_trylock(guard)) {
          }
          results[1] += 1;
          mutex_unlock(guard);
        }
        barrier_wait(&together);
        if (me() == 0)
          results[0] = shared;
        """,
        [220, 220],
    ),
    "a semaphore holds back until it is given": (
        5,
        """
        if (me() == 4) {
          for (volatile int i = 0; i < 300; ++i) {
          }
          shared = 9;
          for (int i = 0; i < 4; ++i)
            sem_give(&none);
        } else {
          sem_take(&none);
          results[me()] = shared;
        }
        """,
        [9, 9, 9, 9],
    ),
    "only one waits for a notifier": (
        3,
        """
        static volatile uint32_t refused;
        if (me() < 2) {
          if (handshake_wait_for(2) == EALREADY)
            results[0] = 1, refused = 1;
        } else {
          while (!refused) {
          }
          handshake_notify();
          results[1] = 1;
        }
        """,
        [1, 1],
    ),
    "counters count in steps of 16": (
        1,
        """
        perfcounter_config(COUNT_INSTRUCTIONS, true);
        for (volatile int i = 0; i < 100; ++i) {
        }
        perfcounter_t instructions = perfcounter_get();
        assert(instructions % 16 == 0 && instructions > 300 && instructions < 1000);
        perfcounter_config(COUNT_CYCLES, true);
        for (volatile int i = 0; i < 100; ++i) {
        }
        perfcounter_t cycles = perfcounter_get();
        assert(cycles > 10 * instructions && cycles < 12 * instructions);
        results[0] = CLOCKS_PER_SEC;
        """,
        [350000000],
    ),
    "products of bytes are the DPU's": (
        1,
        """
        int32_t a = 0x82fe, b = 0x7f80;
        __builtin_mul_sl_sl_rrr(results[0], a, b);
        __builtin_mul_sh_uh_rrr(results[1], a, b);
        __builtin_mul_ul_sh_rrr(results[2], a, b);
        __builtin_mul_uh_ul_rrr(results[3], a, b);
        __builtin_cao_rr(results[4], a);
        __builtin_clz_rr(results[5], a);
        __builtin_lsl_add_rrri(results[6], 5, a, 2);
        """,
        [256, (-126 * 127) % 2**32, 254 * 127, 130 * 128, bin(0x82FE).count("1"), 16, 5 + 4 * 0x82FE],
    ),
    "text goes to the log": (
        1,
        r"""
        printf("%d %5u|%-4x|%04d %c %s %lld %.3f %%\n", -3, 42, 255, 7, 'z', "text", -1234567890123LL, 2.5);
        puts("line");
        putchar('!');
        """,
        "=== DPU#0x0 ===\n-3    42|ff  |0007 z text -1234567890123 2.500 %\nline\n!",
    ),
    "arithmetic of the C library": (
        1,
        """
        volatile int64_t a = -1234567890123ll, b = 98765;
        volatile uint64_t c = 0xfedcba9876543210ull;
        volatile float f = 1.5f;
        volatile double d = 2.25;
        results[0] = a / b == -12500054 && a % b == -1234567890123ll + 12500054ll * 98765;
        results[1] = (c / 10) % 1000 == 1891ull % 1000 || c / 1000000007ull == 18364757802ull;
        results[2] = (int)(f * 4 + f / 2) == 6;
        results[3] = (int)(d * d * 1000) == 5062 && (float)d == 2.25f;
        results[4] = abs(-5) + (int)strlen("four");
        """,
        [1, None, 1, 1, 9],
    ),
    "each tasklet has an errno of its own": (
        3,
        """
        errno = 0;
        barrier_wait(&together);
        if (me() == 1)
          assert(strtol("99999999999", NULL, 10) == 0x7fffffff);
        barrier_wait(&together);
        results[me()] = errno;
        """,
        [0, 34, 0],
    ),
    "check_stack says what is left": (
        2,
        "int left = check_stack(); assert(left > 800 && left <= 1024); results[me()] = 1;",
        [1, 1],
    ),
}


@pytest.fixture(scope="module")
def environment():
    return upmem_builds.environment()


@pytest.mark.parametrize("name", CASES)
def test_device_library(name, tmp_path, environment):
    tasklets, body, expected = CASES[name]
    compile_host(tmp_path, environment, HOST)
    source = f"{HEAD}int main(void) {{\n{body}\n  return 0;\n}}\n"
    built = compile_dpu(tmp_path, environment, source, f"-DNR_TASKLETS={tasklets}")
    assert built.returncode == 0, built.stderr
    result = run(tmp_path, environment)
    assert (result.returncode, result.stderr) == (0, "")
    log, _, numbers = result.stdout.rpartition("\n" if "\n!" not in result.stdout else "!")
    if isinstance(expected, str):
        assert result.stdout.startswith(expected)
        return
    assert log == "=== DPU#0x0 ==="
    for actual, wanted in zip(map(int, numbers.split()), expected, strict=False):
        assert wanted is None or actual == wanted
