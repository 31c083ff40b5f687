// SPDX-License-Identifier: Apache-2.0
// Log, assertions and stack checks.
#include <assert.h>
#include <defs.h>
#include <stdarg.h>
#include <stdio.h>

int vprintf(const char *format, va_list arguments) { return __nb_print(format, *(void **)&arguments); }

int printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vprintf(format, arguments);
  va_end(arguments);
  return length;
}

int puts(const char *text) { return printf("%s\n", text); }
int putchar(int character) { return printf("%c", character); }

void __nb_assert_failed(const char *condition, const char *file, int line) {
  printf("%s:%d: assertion failed: %s\n", file, line, condition);
  __nb_fault(2, condition);
  __builtin_unreachable();
}

extern const uint32_t __nb_stack_start[NB_MAX_TASKLETS];

int check_stack(void) {
  uint32_t pointer;
  __asm__ volatile("mv %0, sp" : "=r"(pointer));
  return (int)(pointer - __nb_stack_start[me()]);
}

void abort(void) {
  __nb_fault(1, "abort");
  __builtin_unreachable();
}
void exit(int code) {
  (void)code;
  __nb_halt();
  __builtin_unreachable();
}
