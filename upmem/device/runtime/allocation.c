// SPDX-License-Identifier: Apache-2.0
// WRAM allocators: bump, blocks of one size, and buddies.
#include <alloc.h>
#include <atomic_bit.h>
#include <errno.h>
#include <seqread.h>
#include <string.h>

// Set by the linker script: what the heap may use.
extern uint8_t __sys_heap_start[], __sys_wram_end[];

ATOMIC_BIT_INIT(__nb_heap);
uint32_t __nb_heap_pointer __attribute__((section(".data.heap_pointer"))) = (uint32_t)__sys_heap_start;

static void *takeHeap(size_t size, uint32_t alignment) {
  ATOMIC_BIT_ACQUIRE(__nb_heap);
  uint32_t start = (__nb_heap_pointer + alignment - 1) & ~(alignment - 1);
  if (size > (uint32_t)__sys_wram_end || start > (uint32_t)__sys_wram_end - size)
    __nb_fault(3, "WRAM heap is full");
  __nb_heap_pointer = start + size;
  ATOMIC_BIT_RELEASE(__nb_heap);
  return (void *)start;
}

void *mem_alloc(size_t size) { return takeHeap(size, 8); }

void *mem_reset(void) {
  ATOMIC_BIT_ACQUIRE(__nb_heap);
  __nb_heap_pointer = ((uint32_t)__sys_heap_start + 7) & ~7u;
  ATOMIC_BIT_RELEASE(__nb_heap);
  return (void *)__nb_heap_pointer;
}

void *__nb_seqread_alloc(unsigned int size) { return takeHeap(2 * size, 8); }

typedef struct block {
  struct block *next;
} block_t;

ATOMIC_BIT_INIT(__nb_fsb);

fsb_allocator_t fsb_alloc(size_t block_size, unsigned int nb_of_blocks) {
  uint32_t size = (block_size + 7) & ~7u;
  block_t *head = mem_alloc(8 + size * nb_of_blocks);
  uint8_t *first = (uint8_t *)head + 8;
  head->next = nb_of_blocks ? (block_t *)first : 0;
  for (unsigned int i = 0; i < nb_of_blocks; i++)
    ((block_t *)(first + i * size))->next = i + 1 < nb_of_blocks ? (block_t *)(first + (i + 1) * size) : 0;
  return head;
}

void *fsb_get(fsb_allocator_t allocator) {
  block_t *head = allocator;
  ATOMIC_BIT_ACQUIRE(__nb_fsb);
  block_t *block = head->next;
  if (block)
    head->next = block->next;
  ATOMIC_BIT_RELEASE(__nb_fsb);
  return block;
}

void fsb_free(fsb_allocator_t allocator, void *ptr) {
  block_t *head = allocator, *block = ptr;
  ATOMIC_BIT_ACQUIRE(__nb_fsb);
  block->next = head->next;
  head->next = block;
  ATOMIC_BIT_RELEASE(__nb_fsb);
}

// Buddies: a complete binary tree whose node holds the order of the largest free block below it, plus one.
enum { SmallestLog2 = 5, MaxLevels = 11 };
ATOMIC_BIT_INIT(__nb_buddy);
static uint8_t *buddyTree, *buddyHeap;
static uint32_t buddyLevels;

static void fillTree(void) {
  for (uint32_t level = 0; level < buddyLevels; level++)
    memset(buddyTree + (1u << level), buddyLevels - level, 1u << level);
}

void buddy_init(size_t size_of_heap) {
  buddyLevels = 1;
  while (((size_t)1 << (SmallestLog2 + buddyLevels - 1)) < size_of_heap && buddyLevels < MaxLevels)
    buddyLevels++;
  buddyTree = mem_alloc(1u << buddyLevels);
  buddyHeap = mem_alloc(1u << (SmallestLog2 + buddyLevels - 1));
  fillTree();
}

void buddy_reset(void) { fillTree(); }

static uint32_t orderOf(size_t size) {
  uint32_t order = 1;
  while (((size_t)1 << (SmallestLog2 + order - 1)) < size)
    order++;
  return order;
}

static void propagate(uint32_t node, uint32_t order) {
  while (node > 1) {
    node >>= 1;
    order++;
    uint8_t left = buddyTree[2 * node], right = buddyTree[2 * node + 1];
    buddyTree[node] = left == order - 1 && right == order - 1 ? order : (left > right ? left : right);
  }
}

void *buddy_alloc(size_t size) {
  uint32_t order = orderOf(size), node = 1;
  ATOMIC_BIT_ACQUIRE(__nb_buddy);
  if (!buddyTree || buddyTree[1] < order) {
    ATOMIC_BIT_RELEASE(__nb_buddy);
    errno = ENOMEM;
    return 0;
  }
  uint32_t level = buddyLevels;
  for (; level > order; level--)
    node = buddyTree[2 * node] >= order ? 2 * node : 2 * node + 1;
  buddyTree[node] = 0;
  uint32_t first = (node << (order - 1)) - (1u << (buddyLevels - 1));
  propagate(node, order);
  ATOMIC_BIT_RELEASE(__nb_buddy);
  return buddyHeap + (first << SmallestLog2);
}

// The allocated node of a block is the lowest one on the way up that is empty.
static uint32_t nodeOf(void *pointer, uint32_t *order) {
  uint32_t node = (((uint8_t *)pointer - buddyHeap) >> SmallestLog2) + (1u << (buddyLevels - 1));
  *order = 1;
  while (buddyTree[node] != 0) {
    node >>= 1;
    ++*order;
  }
  return node;
}

void buddy_free(void *pointer) {
  if (!pointer)
    return;
  ATOMIC_BIT_ACQUIRE(__nb_buddy);
  uint32_t order, node = nodeOf(pointer, &order);
  buddyTree[node] = order;
  propagate(node, order);
  ATOMIC_BIT_RELEASE(__nb_buddy);
}

void *buddy_realloc(void *ptr, size_t size) {
  if (!ptr)
    return buddy_alloc(size);
  uint32_t order;
  nodeOf(ptr, &order);
  size_t held = (size_t)1 << (SmallestLog2 + order - 1);
  if (size <= held && orderOf(size) == order)
    return ptr;
  void *moved = buddy_alloc(size);
  if (!moved)
    return 0;
  memcpy(moved, ptr, held < size ? held : size);
  buddy_free(ptr);
  return moved;
}
