// SPDX-License-Identifier: Apache-2.0
// Branch prediction of an out-of-order core: TAGE for conditional branches (Seznec and Michaud, "A case for (partially)
// tagged geometric history length branch predictors", JILP 2006), a return stack, and a table of indirect targets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nearbank::sim {

class BranchPredictor {
public:
  BranchPredictor();

  /// Predicts a conditional branch and learns from its outcome. @return whether the prediction was right
  bool isRight(uint64_t pc, bool isTaken);
  /// The same for an indirect jump that is no return.
  bool isTargetRight(uint64_t pc, uint64_t target);
  void call(uint64_t returnPc);
  /// The same for a return.
  bool isReturnRight(uint64_t target);
  void reset();

private:
  // The paper's four tagged tables with geometric history lengths, of 1 Ki entries each, beside a base of 8 Ki.
  static constexpr size_t numTables = 4, logEntries = 10, logBase = 13, returnDepth = 32;
  static constexpr std::array<unsigned, numTables> historyLengths = {5, 15, 44, 130};
  static constexpr std::array<unsigned, numTables> tagBits = {9, 9, 10, 11};

  struct Entry {
    uint16_t tag = 0;
    int8_t counter = 0; ///< -4 to 3; taken when not negative.
    uint8_t useful = 0; ///< 0 to 3.
  };
  /// The latest `length` outcomes, folded to `bits` bits by exclusive or.
  struct Folded {
    uint32_t value = 0;
    unsigned bits = 1;
    unsigned outAt = 0; ///< Bit at which the oldest outcome leaves: length % bits.
    void push(uint32_t newest, uint32_t oldest) {
      value = (value << 1 | newest) ^ oldest << outAt;
      value = (value ^ value >> bits) & ((1u << bits) - 1);
    }
  };

  void remember(bool isTaken);
  uint32_t outcome(unsigned age) const { return history_[(head_ - age) % history_.size()]; }

  std::vector<int8_t> base_; ///< -2 to 1.
  std::array<std::vector<Entry>, numTables> tables_;
  std::array<Folded, numTables> foldedIndex_, foldedTag_, foldedTagShort_;
  std::array<uint8_t, 256> history_{};
  unsigned head_ = 0;
  uint64_t numUpdates_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> targets_; ///< Jump, latest target; direct mapped.
  std::array<uint64_t, returnDepth> returns_{};
  unsigned returnTop_ = 0;
};

} // namespace nearbank::sim
