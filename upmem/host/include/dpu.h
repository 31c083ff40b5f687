// SPDX-License-Identifier: Apache-2.0
// Host side of UPMEM programs, run by Nearbank's simulator.
#pragma once

#include <dpu_error.h>
#include <dpu_types.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DPU_ALLOCATE_ALL ((uint32_t)-1)
#define DPU_MRAM_HEAP_POINTER_NAME "__sys_used_mram_end"

dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_free(struct dpu_set_t dpu_set);
dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks);
dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus);

dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path, struct dpu_program_t **program);
dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer_start, size_t buffer_size,
                                 struct dpu_program_t **program);
dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin, struct dpu_program_t **program);
dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name, struct dpu_symbol_t *symbol);

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy);
dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault);
dpu_error_t dpu_sync(struct dpu_set_t dpu_set);

dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, const void *src,
                        size_t length);
dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, void *dst,
                          size_t length);
dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                               const void *src, size_t length);
dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                 void *dst, size_t length);
dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer);
dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name, uint32_t symbol_offset,
                          size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, const void *src,
                             size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    const void *src, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name, uint32_t symbol_offset,
                             size_t length, get_block_t *get_block_info, dpu_sg_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags);
dpu_error_t dpu_callback(struct dpu_set_t dpu_set,
                         dpu_error_t (*callback)(struct dpu_set_t dpu_set, uint32_t rank_id, void *arg), void *arg,
                         dpu_callback_flags_t flags);

/// Walks over the ranks or the DPUs of a set.
struct dpu_set_iterator_t {
  struct dpu_set_t set;
  struct dpu_set_t next;
  uint32_t count;
  uint32_t rank, member;
  bool has_next;
};
struct dpu_set_iterator_t __dpu_iterate(const struct dpu_set_t *set, bool by_rank);
void __dpu_advance(struct dpu_set_iterator_t *iterator, bool by_rank);

#define __DPU_WALK(by_rank, set, one, index, name, ...)                                                                \
  for (struct dpu_set_iterator_t name = __dpu_iterate(&(set), by_rank);                                                \
       name.has_next && ((one) = name.next, (index) = name.count, true); __dpu_advance(&name, by_rank))
#define __DPU_WALK_PLAIN(by_rank, set, one, name)                                                                      \
  for (struct dpu_set_iterator_t name = __dpu_iterate(&(set), by_rank); name.has_next && ((one) = name.next, true);    \
       __dpu_advance(&name, by_rank))
#define __DPU_JOIN2(a, b) a##b
#define __DPU_JOIN(a, b) __DPU_JOIN2(a, b)
#define __DPU_NAME __DPU_JOIN(__dpu_iterator_, __LINE__)
#define __DPU_FOREACH_3(set, one, index) __DPU_WALK(false, set, one, index, __DPU_NAME)
#define __DPU_FOREACH_2(set, one) __DPU_WALK_PLAIN(false, set, one, __DPU_NAME)
#define __DPU_RANK_FOREACH_3(set, one, index) __DPU_WALK(true, set, one, index, __DPU_NAME)
#define __DPU_RANK_FOREACH_2(set, one) __DPU_WALK_PLAIN(true, set, one, __DPU_NAME)
#define __DPU_THIRD(a, b, c, macro, ...) macro
/// DPU_FOREACH(set, dpu) or DPU_FOREACH(set, dpu, index).
#define DPU_FOREACH(...) __DPU_THIRD(__VA_ARGS__, __DPU_FOREACH_3, __DPU_FOREACH_2, )(__VA_ARGS__)
/// DPU_RANK_FOREACH(set, rank) or DPU_RANK_FOREACH(set, rank, index).
#define DPU_RANK_FOREACH(...) __DPU_THIRD(__VA_ARGS__, __DPU_RANK_FOREACH_3, __DPU_RANK_FOREACH_2, )(__VA_ARGS__)

/// Puts the file `path` into the host program under `name`.
#define DPU_INCBIN(name, filename)                                                                                     \
  extern uint8_t __dpu_incbin_begin_##name[], __dpu_incbin_end_##name[];                                               \
  __asm__(".pushsection .rodata\n.balign 16\n.globl __dpu_incbin_begin_" #name "\n__dpu_incbin_begin_" #name           \
          ":\n.incbin \"" filename "\"\n.globl __dpu_incbin_end_" #name "\n__dpu_incbin_end_" #name                    \
          ":\n.byte 0\n.popsection\n");                                                                                \
  static struct dpu_incbin_t *__dpu_incbin_##name(void) {                                                              \
    static struct dpu_incbin_t __incbin;                                                                               \
    __incbin.buffer = __dpu_incbin_begin_##name;                                                                       \
    __incbin.size = (size_t)(__dpu_incbin_end_##name - __dpu_incbin_begin_##name);                                     \
    __incbin.path = filename;                                                                                          \
    return &__incbin;                                                                                                  \
  }                                                                                                                    \
  struct dpu_incbin_t name __attribute__((unused));                                                                    \
  __attribute__((constructor)) static void __dpu_incbin_fill_##name(void) { name = *__dpu_incbin_##name(); }

#ifdef __cplusplus
}
#endif

#include <dpu_log.h>
