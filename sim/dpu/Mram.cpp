// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Mram.h"

#include <algorithm>
#include <cstring>

namespace nearbank::dpu {

void Mram::drop(Page *page) {
  if (page && page->numOwners.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete page;
}

void Mram::clear() {
  for (Page *page : pages_)
    drop(page);
  pages_.clear();
}

Mram::Page *Mram::page(uint32_t index) {
  if (pages_.empty())
    pages_.resize(Bytes / PageBytes);
  if (!pages_[index]) {
    pages_[index] = new Page;
    std::memset(pages_[index]->bytes, 0, PageBytes);
  }
  return pages_[index];
}

Mram::Page *Mram::writable(uint32_t index) {
  Page *old = page(index);
  if (old->numOwners.load(std::memory_order_acquire) == 1)
    return old;
  Page *own = new Page;
  std::memcpy(own->bytes, old->bytes, PageBytes);
  drop(old);
  return pages_[index] = own;
}

void Mram::share(uint32_t index, Page *shared) {
  if (pages_.empty())
    pages_.resize(Bytes / PageBytes);
  if (pages_[index] == shared)
    return;
  shared->numOwners.fetch_add(1, std::memory_order_relaxed);
  drop(pages_[index]);
  pages_[index] = shared;
}

void Mram::read(uint32_t address, void *to, size_t size) const {
  auto *out = static_cast<std::byte *>(to);
  while (size > 0) {
    uint32_t offset = address % PageBytes;
    size_t part = std::min<size_t>(size, PageBytes - offset);
    const Page *page = pages_.empty() ? nullptr : pages_[address / PageBytes];
    if (page)
      std::memcpy(out, page->bytes + offset, part);
    else
      std::memset(out, 0, part);
    out += part, address += static_cast<uint32_t>(part), size -= part;
  }
}

void Mram::write(uint32_t address, const void *from, size_t size) {
  auto *in = static_cast<const std::byte *>(from);
  while (size > 0) {
    uint32_t offset = address % PageBytes;
    size_t part = std::min<size_t>(size, PageBytes - offset);
    std::memcpy(writable(address / PageBytes)->bytes + offset, in, part);
    in += part, address += static_cast<uint32_t>(part), size -= part;
  }
}

size_t Mram::numPages() const {
  return static_cast<size_t>(std::count_if(pages_.begin(), pages_.end(), [](const Page *page) { return page; }));
}

} // namespace nearbank::dpu
