// SPDX-License-Identifier: Apache-2.0
// Single instructions of the DPU by name. The first argument receives the result.
#pragma once

#include <stdint.h>

#define __NB_MUL(code, dest, a, b)                                                                                     \
  do {                                                                                                                 \
    uint32_t __nb_product;                                                                                             \
    __asm__(".insn r 0x0b, 0, " #code ", %0, %1, %2" : "=r"(__nb_product) : "r"(a), "r"(b));                           \
    (dest) = __nb_product;                                                                                             \
  } while (0)

// 8-bit products: signed or unsigned, lowest or second byte of each operand.
#define __builtin_mul_sl_sl_rrr(dest, a, b) __NB_MUL(0, dest, a, b)
#define __builtin_mul_sl_sh_rrr(dest, a, b) __NB_MUL(1, dest, a, b)
#define __builtin_mul_sl_ul_rrr(dest, a, b) __NB_MUL(2, dest, a, b)
#define __builtin_mul_sl_uh_rrr(dest, a, b) __NB_MUL(3, dest, a, b)
#define __builtin_mul_sh_sl_rrr(dest, a, b) __NB_MUL(4, dest, a, b)
#define __builtin_mul_sh_sh_rrr(dest, a, b) __NB_MUL(5, dest, a, b)
#define __builtin_mul_sh_ul_rrr(dest, a, b) __NB_MUL(6, dest, a, b)
#define __builtin_mul_sh_uh_rrr(dest, a, b) __NB_MUL(7, dest, a, b)
#define __builtin_mul_ul_sl_rrr(dest, a, b) __NB_MUL(8, dest, a, b)
#define __builtin_mul_ul_sh_rrr(dest, a, b) __NB_MUL(9, dest, a, b)
#define __builtin_mul_ul_ul_rrr(dest, a, b) __NB_MUL(10, dest, a, b)
#define __builtin_mul_ul_uh_rrr(dest, a, b) __NB_MUL(11, dest, a, b)
#define __builtin_mul_uh_sl_rrr(dest, a, b) __NB_MUL(12, dest, a, b)
#define __builtin_mul_uh_sh_rrr(dest, a, b) __NB_MUL(13, dest, a, b)
#define __builtin_mul_uh_ul_rrr(dest, a, b) __NB_MUL(14, dest, a, b)
#define __builtin_mul_uh_uh_rrr(dest, a, b) __NB_MUL(15, dest, a, b)

#define __builtin_cao_rr(dest, a) ((dest) = __builtin_popcount(a))
#define __builtin_clz_rr(dest, a) ((dest) = (a) ? __builtin_clz(a) : 32)
#define __builtin_clo_rr(dest, a) ((dest) = ~(a) ? __builtin_clz(~(a)) : 32)
#define __builtin_extsb_rr(dest, a) ((dest) = (int8_t)(a))
#define __builtin_extsh_rr(dest, a) ((dest) = (int16_t)(a))
#define __builtin_extub_rr(dest, a) ((dest) = (uint8_t)(a))
#define __builtin_extuh_rr(dest, a) ((dest) = (uint16_t)(a))
#define __builtin_lsl_add_rrri(dest, a, b, shift) ((dest) = (a) + ((b) << (shift)))
#define __builtin_lsr_add_rrri(dest, a, b, shift) ((dest) = (a) + ((uint32_t)(b) >> (shift)))
