// SPDX-License-Identifier: Apache-2.0
// The 64 MB of one DPU in pages that are made when written and shared until one DPU changes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace nearbank::dpu {

class Mram {
public:
  static constexpr uint32_t Bytes = 64u << 20;
  static constexpr uint32_t PageBytes = 32u << 10;

  /// A page that several memories may hold.
  struct Page {
    std::atomic<uint32_t> numOwners{1};
    alignas(64) std::byte bytes[PageBytes];
  };

  Mram() = default;
  ~Mram() { clear(); }
  Mram(const Mram &) = delete;
  Mram &operator=(const Mram &) = delete;

  /// `address` + `size` lie within Bytes.
  void read(uint32_t address, void *to, size_t size) const;
  void write(uint32_t address, const void *from, size_t size);
  /// Takes part in `page`, which lies at page number `index`.
  void share(uint32_t index, Page *page);
  /// The page at `index`, for sharing; made when it is not there.
  Page *page(uint32_t index);
  void clear();
  /// Pages held, shared ones too.
  size_t numPages() const;

private:
  Page *writable(uint32_t index);
  static void drop(Page *page);
  std::vector<Page *> pages_; // Empty until the first write.
};

} // namespace nearbank::dpu
