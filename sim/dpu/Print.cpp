// SPDX-License-Identifier: Apache-2.0
// printf of DPU programs, done by the simulator.

#include "sim/dpu/Decode.h"
#include "sim/dpu/Dpu.h"

#include <cstdio>
#include <cstring>

namespace nearbank::dpu {
namespace {

class Formatter {
public:
  Formatter(Dpu &dpu, uint32_t arguments) : dpu_(dpu), next_(arguments) {}

  std::string format(uint32_t address) {
    std::string pattern = text(address), out;
    for (size_t i = 0; i < pattern.size();) {
      if (pattern[i] != '%') {
        out += pattern[i++];
        continue;
      }
      if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
        out += '%';
        i += 2;
        continue;
      }
      i = one(pattern, i + 1, out);
    }
    return out;
  }

private:
  void read(uint32_t address, void *to, uint32_t size) {
    if (address <= WramBytes - size)
      std::memcpy(to, dpu_.wram() + address, size);
    else if (address >= MramBase && address - MramBase <= Mram::Bytes - size)
      dpu_.mram.read(address - MramBase, to, size);
    else
      std::memset(to, 0, size);
  }
  std::string text(uint32_t address) {
    std::string out;
    for (char c; out.size() < 65536; ++address) {
      read(address, &c, 1);
      if (!c)
        break;
      out += c;
    }
    return out;
  }
  uint32_t word() {
    uint32_t value;
    read(next_, &value, 4);
    next_ += 4;
    return value;
  }
  uint64_t wide() {
    next_ = (next_ + 7) & ~7u; // Pairs of registers begin at even ones.
    uint64_t value;
    read(next_, &value, 8);
    next_ += 8;
    return value;
  }

  // One conversion; returns where the pattern goes on.
  size_t one(const std::string &pattern, size_t i, std::string &out) {
    std::string spec = "%";
    unsigned longs = 0;
    for (; i < pattern.size(); ++i) {
      char c = pattern[i];
      if (c == '*')
        spec += std::to_string(static_cast<int32_t>(word()));
      else if (c == 'l')
        ++longs;
      else if (c == 'j')
        longs = 2;
      else if (std::strchr("hzt", c))
        continue;
      else if (std::strchr("0123456789.+-# ", c))
        spec += c;
      else
        break;
    }
    if (i >= pattern.size())
      return i;
    char conversion = pattern[i];
    char buffer[512];
    int length = 0;
    auto print = [&](const char *suffix, auto value) {
      length = std::snprintf(buffer, sizeof buffer, (spec + suffix).c_str(), value);
    };
    switch (conversion) {
    case 'd':
    case 'i':
      print("lld", longs >= 2 ? static_cast<long long>(wide()) : static_cast<int32_t>(word()));
      break;
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      std::string suffix = std::string("ll") + conversion;
      print(suffix.c_str(), static_cast<unsigned long long>(longs >= 2 ? wide() : word()));
      break;
    }
    case 'p':
      print("#llx", static_cast<unsigned long long>(word()));
      break;
    case 'c':
      print("c", static_cast<int>(word()));
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a': {
      uint64_t bits = wide();
      double value;
      std::memcpy(&value, &bits, 8);
      print(std::string(1, conversion).c_str(), value);
      break;
    }
    case 's': {
      std::string argument = text(word());
      if (spec == "%")
        out += argument;
      else
        print("s", argument.c_str());
      break;
    }
    default:
      out += spec + conversion;
    }
    if (length > 0)
      out.append(buffer, std::min<size_t>(static_cast<size_t>(length), sizeof buffer - 1));
    return i + 1;
  }

  Dpu &dpu_;
  uint32_t next_;
};

} // namespace

std::string formatGuest(Dpu &dpu, uint32_t format, uint32_t arguments) {
  return Formatter(dpu, arguments).format(format);
}

} // namespace nearbank::dpu
