// SPDX-License-Identifier: Apache-2.0
// TAGE branch predictor.
#include "sim/core/BranchPredictor.h"

#include <algorithm>

namespace nearbank::sim {

BranchPredictor::BranchPredictor() : base_(size_t{1} << logBase), targets_(512) {
  for (auto &table : tables_)
    table.resize(size_t{1} << logEntries);
  reset();
}

void BranchPredictor::reset() {
  std::fill(base_.begin(), base_.end(), 0);
  for (size_t i = 0; i < numTables; ++i) {
    std::fill(tables_[i].begin(), tables_[i].end(), Entry{});
    auto folded = [&](unsigned bits) { return Folded{0, bits, historyLengths[i] % bits}; };
    foldedIndex_[i] = folded(logEntries);
    foldedTag_[i] = folded(tagBits[i]);
    foldedTagShort_[i] = folded(tagBits[i] - 1);
  }
  history_.fill(0);
  head_ = 0;
  numUpdates_ = 0;
  std::fill(targets_.begin(), targets_.end(), std::pair<uint64_t, uint64_t>{});
  returns_.fill(0);
  returnTop_ = 0;
}

void BranchPredictor::remember(bool isTaken) {
  for (size_t i = 0; i < numTables; ++i) {
    uint32_t newest = isTaken ? 1 : 0, oldest = outcome(historyLengths[i] - 1);
    foldedIndex_[i].push(newest, oldest);
    foldedTag_[i].push(newest, oldest);
    foldedTagShort_[i].push(newest, oldest);
  }
  head_ = (head_ + 1) % history_.size();
  history_[head_] = isTaken ? 1 : 0;
}

bool BranchPredictor::isRight(uint64_t pc, bool isTaken) {
  auto key = static_cast<uint32_t>(pc >> 1);
  int8_t &base = base_[key & ((1u << logBase) - 1)];
  std::array<Entry *, numTables> entries;
  std::array<uint16_t, numTables> tags;
  int provider = -1, alternative = -1;
  for (size_t i = 0; i < numTables; ++i) {
    uint32_t index = (key ^ key >> (logEntries - i) ^ foldedIndex_[i].value) & ((1u << logEntries) - 1);
    tags[i] =
        static_cast<uint16_t>((key ^ foldedTag_[i].value ^ foldedTagShort_[i].value << 1) & ((1u << tagBits[i]) - 1));
    entries[i] = &tables_[i][index];
    if (entries[i]->tag == tags[i]) {
      alternative = provider;
      provider = static_cast<int>(i);
    }
  }
  auto predictionOf = [&](int table) {
    return table < 0 ? base >= 0 : entries[static_cast<size_t>(table)]->counter >= 0;
  };
  bool prediction = predictionOf(provider), other = predictionOf(alternative);
  if (provider >= 0) {
    Entry &entry = *entries[static_cast<size_t>(provider)];
    // A newly allocated entry is weak: until it has proved useful, the alternative decides.
    bool isNew = entry.useful == 0 && (entry.counter == 0 || entry.counter == -1);
    bool used = isNew ? other : prediction;
    if (prediction != other)
      entry.useful =
          static_cast<uint8_t>(prediction == isTaken ? std::min(3, entry.useful + 1) : std::max(0, entry.useful - 1));
    entry.counter = static_cast<int8_t>(isTaken ? std::min(3, entry.counter + 1) : std::max(-4, entry.counter - 1));
    prediction = used;
  } else {
    base = static_cast<int8_t>(isTaken ? std::min(1, base + 1) : std::max(-2, base - 1));
  }
  bool isRight = prediction == isTaken;
  if (!isRight && provider + 1 < static_cast<int>(numTables)) {
    bool isAllocated = false;
    for (auto i = static_cast<size_t>(provider + 1); i < numTables && !isAllocated; ++i)
      if (entries[i]->useful == 0) {
        *entries[i] = {tags[i], static_cast<int8_t>(isTaken ? 0 : -1), 0};
        isAllocated = true;
      }
    for (auto i = static_cast<size_t>(provider + 1); i < numTables && !isAllocated; ++i)
      --entries[i]->useful;
  }
  // Usefulness ages, so that entries of past phases can be replaced.
  constexpr uint64_t agePeriod = 1 << 18; // the paper's 256 Ki branches
  if (++numUpdates_ % agePeriod == 0)
    for (auto &table : tables_)
      for (Entry &entry : table)
        entry.useful >>= 1;
  remember(isTaken);
  return isRight;
}

bool BranchPredictor::isTargetRight(uint64_t pc, uint64_t target) {
  auto &entry = targets_[(pc >> 1 ^ foldedIndex_[0].value) % targets_.size()];
  bool isRight = entry == std::pair(pc, target);
  entry = {pc, target};
  remember((target >> 2 & 1) != 0);
  return isRight;
}

void BranchPredictor::call(uint64_t returnPc) { returns_[returnTop_++ % returnDepth] = returnPc; }

bool BranchPredictor::isReturnRight(uint64_t target) { return returns_[--returnTop_ % returnDepth] == target; }

} // namespace nearbank::sim
