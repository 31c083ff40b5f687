// SPDX-License-Identifier: Apache-2.0
// Instructions that a DPU has and RV32IM has not, in the custom-0 opcode; sim/dpu/Decode.cpp reads them.
#pragma once

#include <stdint.h>

#define NB_ALWAYS_INLINE static inline __attribute__((always_inline))

/// Takes the atomic bit whose address ends in the low byte of `bit`; repeats until it is free.
NB_ALWAYS_INLINE void __nb_acquire(uint32_t bit) {
  __asm__ volatile(".insn r 0x0b, 1, 0, x0, %0, x0" : : "r"(bit) : "memory");
}
/// Tries once; 0 when taken.
NB_ALWAYS_INLINE uint32_t __nb_try_acquire(uint32_t bit) {
  uint32_t was;
  __asm__ volatile(".insn r 0x0b, 1, 1, %0, %1, x0" : "=r"(was) : "r"(bit) : "memory");
  return was;
}
NB_ALWAYS_INLINE void __nb_release(uint32_t bit) {
  __asm__ volatile(".insn r 0x0b, 1, 2, x0, %0, x0" : : "r"(bit) : "memory");
}
/// Sleeps until another tasklet resumes this one.
NB_ALWAYS_INLINE void __nb_stop(void) { __asm__ volatile(".insn r 0x0b, 2, 0, x0, x0, x0" : : : "memory"); }
/// Wakes tasklet `id`; repeats until that one has stopped.
NB_ALWAYS_INLINE void __nb_resume(uint32_t id) {
  __asm__ volatile(".insn r 0x0b, 2, 1, x0, %0, x0" : : "r"(id) : "memory");
}
/// Ends the tasklet.
NB_ALWAYS_INLINE void __nb_halt(void) { __asm__ volatile(".insn r 0x0b, 2, 2, x0, x0, x0" : : : "memory"); }
/// Stops the DPU in fault state; `code` and `text` say why.
NB_ALWAYS_INLINE void __nb_fault(uint32_t code, const char *text) {
  __asm__ volatile(".insn r 0x0b, 2, 3, x0, %0, %1" : : "r"(code), "r"(text) : "memory");
}
/// Configures the performance counter; the value before is returned in units of 16 events.
NB_ALWAYS_INLINE uint32_t __nb_counter_config(uint32_t mode, uint32_t reset) {
  uint32_t value;
  __asm__ volatile(".insn r 0x0b, 3, 0, %0, %1, %2" : "=r"(value) : "r"(mode), "r"(reset) : "memory");
  return value;
}
NB_ALWAYS_INLINE uint32_t __nb_counter_get(void) {
  uint32_t value;
  __asm__ volatile(".insn r 0x0b, 3, 1, %0, x0, x0" : "=r"(value) : : "memory");
  return value;
}
/// Clock of the DPU in Hz.
NB_ALWAYS_INLINE uint32_t __nb_clock_hz(void) {
  uint32_t value;
  __asm__(".insn r 0x0b, 3, 2, %0, x0, x0" : "=r"(value));
  return value;
}
/// Writes formatted text to the log of the DPU; `arguments` points at them as a va_list does.
NB_ALWAYS_INLINE uint32_t __nb_print(const char *format, const void *arguments) {
  uint32_t length;
  __asm__ volatile(".insn r 0x0b, 4, 0, %0, %1, %2" : "=r"(length) : "r"(format), "r"(arguments) : "memory");
  return length;
}
NB_ALWAYS_INLINE void __nb_load_dma(uint32_t wram, uint32_t mram, uint32_t bytes) {
  __asm__ volatile(".insn r4 0x0b, 5, 0, x0, %0, %1, %2" : : "r"(wram), "r"(mram), "r"(bytes) : "memory");
}
NB_ALWAYS_INLINE void __nb_store_dma(uint32_t wram, uint32_t mram, uint32_t bytes) {
  __asm__ volatile(".insn r4 0x0b, 6, 0, x0, %0, %1, %2" : : "r"(wram), "r"(mram), "r"(bytes) : "memory");
}
/// The same with a length that is not known when compiling: a DPU computes the length field first.
NB_ALWAYS_INLINE void __nb_load_dma_variable(uint32_t wram, uint32_t mram, uint32_t bytes) {
  __asm__ volatile(".insn r4 0x0b, 5, 1, x0, %0, %1, %2" : : "r"(wram), "r"(mram), "r"(bytes) : "memory");
}
NB_ALWAYS_INLINE void __nb_store_dma_variable(uint32_t wram, uint32_t mram, uint32_t bytes) {
  __asm__ volatile(".insn r4 0x0b, 6, 1, x0, %0, %1, %2" : : "r"(wram), "r"(mram), "r"(bytes) : "memory");
}
