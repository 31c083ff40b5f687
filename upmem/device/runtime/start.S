// SPDX-License-Identifier: Apache-2.0
// Every tasklet begins here; the machine has set its stack pointer and, in tp, its number.
.section .text.start,"ax",@progbits
.globl __nb_start
.type __nb_start, @function
__nb_start:
  call main
  .insn r 0x0b, 2, 2, x0, x0, x0
1:
  j 1b
.size __nb_start, . - __nb_start

// An initialised first word keeps address 0 from being a variable's.
.section .data.null_pointer,"aw",@progbits
.globl __sys_null_pointer
.p2align 3
__sys_null_pointer:
  .quad 0
