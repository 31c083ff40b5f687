// SPDX-License-Identifier: Apache-2.0
// Every tasklet begins here; the machine has set its stack pointer and, in gp, its number. tp points at a copy of the
// thread-local variables for each tasklet, where the program has any (the C library's errno).
.section .text.start,"ax",@progbits
.globl __nb_start
.type __nb_start, @function
__nb_start:
  lui t0, %hi(__nb_tls_size)
  addi t0, t0, %lo(__nb_tls_size)
  beqz t0, 2f
  mul t1, t0, gp
  lui tp, %hi(__nb_tls_copies)
  addi tp, tp, %lo(__nb_tls_copies)
  add tp, tp, t1
  lui a0, %hi(__nb_tls_image)
  addi a0, a0, %lo(__nb_tls_image)
  mv a1, tp
  add t1, a1, t0
1:
  lw a2, 0(a0)
  sw a2, 0(a1)
  addi a0, a0, 4
  addi a1, a1, 4
  bltu a1, t1, 1b
2:
  call main
  .insn r 0x0b, 2, 2, x0, x0, x0
3:
  j 3b
.size __nb_start, . - __nb_start

// An initialised first word keeps address 0 from being a variable's.
.section .data.null_pointer,"aw",@progbits
.globl __sys_null_pointer
.p2align 3
__sys_null_pointer:
  .quad 0
