// SPDX-License-Identifier: Apache-2.0
// Attributes of variables and functions of a DPU program.
#pragma once

#define __section(name) __attribute__((section(name)))
#define __aligned(bytes) __attribute__((aligned(bytes)))
#define __used __attribute__((used))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __NO_INSTRUMENT_FUNC __attribute__((no_instrument_function))

/// What DMA reads and writes lies on 8 bytes.
#define __dma_aligned __aligned(8)
#define __keep __used
/// Visible to the host by name.
#define __host __aligned(8) __used __section(".dpu_host")
/// A pointer into MRAM; not to be confused with one into WRAM.
#define __mram_ptr __attribute__((address_space(255)))
/// MRAM variable with an initial value.
#define __mram __mram_ptr __section(".mram") __dma_aligned __used
/// MRAM variable without an initial value.
#define __mram_noinit __mram_ptr __section(".bss.mram.noinit") __dma_aligned __used
/// MRAM variable that keeps its content from one load to the next.
#define __mram_noinit_keep __mram_ptr __section(".bss.mram.noinit.keep") __dma_aligned __used
/// A variable in the low addresses, which short immediates reach.
#define __lower_data(name) __attribute__((used, section(".data.lower." name)))
#define __atomic_bit __section(".bss.atomic")
