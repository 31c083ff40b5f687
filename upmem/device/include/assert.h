// SPDX-License-Identifier: Apache-2.0
// Failed assertions stop the DPU in fault state. May be included again, as the C standard wants.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __nb_assert_failed(#condition, __FILE__, __LINE__))
#endif
#ifndef __NB_ASSERT_DECLARED
#define __NB_ASSERT_DECLARED
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
__attribute__((noreturn)) void __nb_assert_failed(const char *condition, const char *file, int line);
#endif
