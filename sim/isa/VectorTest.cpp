// SPDX-License-Identifier: Apache-2.0
// Vector instructions against scalar formulas, on VLEN 256 with SEW 32 and LMUL 1 unless said. Words were assembled by
// llvm-mc 22 from the source beside them.
#include "sim/isa/Vector.h"

#include "sim/isa/FloatConvert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>

namespace nearbank::sim {
namespace {

constexpr unsigned numElements = 8;

class VectorTest : public testing::Test {
protected:
  VectorTest() {
    state_.reset(32);
    EXPECT_EQ(setVector(state_, 0x0d05f557, 8, 0), 8u); // vsetvli a0, a1, e32, m1, ta, ma
    const int32_t left[numElements] = {5, -7, 0, 2147483647, -2147483647 - 1, 100000, -3, 12};
    const int32_t right[numElements] = {3, 2, 0, 1, -1, 70000, 31, 4};
    std::memcpy(state_.at(9), left, sizeof left);
    std::memcpy(state_.at(10), right, sizeof right);
  }

  template <typename T> T *at(unsigned number) { return reinterpret_cast<T *>(state_.at(number)); }

  void setFloats() {
    const float left[numElements] = {1.5F, -2.25F, 0.0F, -0.0F, INFINITY, NAN, 3e38F, 2.5F};
    const float right[numElements] = {0.5F, 4.0F, -0.0F, 7.0F, -INFINITY, 1.0F, 3e38F, -0.5F};
    std::memcpy(state_.at(9), left, sizeof left);
    std::memcpy(state_.at(10), right, sizeof right);
  }

  bool run(uint32_t word, uint64_t scalar = 0) {
    EXPECT_NE(decode(word).opcode, Opcode::Illegal);
    return executeVector(state_, word, scalar, result_, 0, flags_);
  }

  /// Runs a vd = f(vs2 = v9, vs1 = v10) instruction and compares with `f` element by element, in bits.
  template <typename T> void check(uint32_t word, const std::function<T(T, T)> &f) {
    ASSERT_TRUE(run(word));
    for (unsigned i = 0; i < numElements; ++i) {
      T expected = f(at<T>(9)[i], at<T>(10)[i]);
      EXPECT_EQ(std::memcmp(&at<T>(8)[i], &expected, sizeof(T)), 0) << "element " << i << " is " << at<T>(8)[i];
    }
  }

  VectorState state_;
  uint64_t result_ = 0;
  uint32_t flags_ = 0;
};

TEST_F(VectorTest, SetsTypeAndLength) {
  EXPECT_EQ(setVector(state_, 0x0d05f557, 5, 0), 5u);
  EXPECT_EQ(setVector(state_, 0x0d05f557, 1000, 0), 8u);
  EXPECT_EQ(setVector(state_, 0xccf27057, 0, 0), 4u); // vsetivli zero, 4, e16, mf2, ta, ma
  EXPECT_EQ(state_.sewLog2(), 1u);
  EXPECT_EQ(state_.lmulLog2(), -1);
  EXPECT_EQ(state_.set(0x1c, 4), 0u); // LMUL 4 is reserved
  EXPECT_FALSE(state_.isSet());
  EXPECT_FALSE(executeVector(state_, 0x02950457, 0, result_, 0, flags_));
}

TEST_F(VectorTest, IntegerArithmetic) {
  using U = uint32_t;
  using S = int32_t;
  check<U>(0x02950457, [](U a, U b) { return a + b; });                     // vadd.vv v8, v9, v10
  check<U>(0x029eb457, [](U a, U) { return a - 3; });                       // vadd.vi v8, v9, -3
  check<S>(0x16950457, [](S a, S b) { return std::min(a, b); });            // vmin.vv v8, v9, v10
  check<U>(0x1a950457, [](U a, U b) { return std::max(a, b); });            // vmaxu.vv v8, v9, v10
  check<U>(0x9692b457, [](U a, U) { return a << 5; });                      // vsll.vi v8, v9, 5
  check<S>(0xa6950457, [](S a, S b) { return a >> (b & 31); });             // vsra.vv v8, v9, v10
  check<U>(0x96952457, [](U a, U b) { return a * b; });                     // vmul.vv v8, v9, v10
  check<S>(0x9e952457, [](S a, S b) { return S((int64_t{a} * b) >> 32); }); // vmulh.vv v8, v9, v10
  check<S>(0x86952457, [](S a, S b) {                                       // vdiv.vv v8, v9, v10
    return b == 0 ? -1 : S(int64_t{a} / b);
  });
  check<U>(0x8a952457, [](U a, U b) { return b == 0 ? a : a % b; }); // vremu.vv v8, v9, v10
  ASSERT_TRUE(run(0x0e954457, 10));                                  // vrsub.vx v8, v9, a0
  EXPECT_EQ(at<S>(8)[1], 17);
  at<U>(8)[5] = 1;
  ASSERT_TRUE(run(0xb6a4a457)); // vmacc.vv v8, v9, v10
  EXPECT_EQ(at<U>(8)[5], 1U + 100000U * 70000U);
}

TEST_F(VectorTest, ShiftsTakeUnsignedImmediates) {
  ASSERT_EQ(state_.set(0xd8, 4), 4u); // e64, m1, ta, ma
  const uint64_t values[4] = {1, 2, 3, 127};
  std::memcpy(state_.at(9), values, sizeof values);
  ASSERT_TRUE(run(0x96983457)); // vsll.vi v8, v9, 16
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(at<uint64_t>(8)[i], values[i] << 16);
}

TEST_F(VectorTest, MasksLeaveTheOthersAlone) {
  ASSERT_TRUE(run(0x6e950057)); // vmslt.vv v0, v9, v10
  EXPECT_EQ(state_.registers[0], 0b01010010);
  std::memset(state_.at(8), 0x55, 32);
  ASSERT_TRUE(run(0x00950457)); // vadd.vv v8, v9, v10, v0.t
  EXPECT_EQ(at<uint32_t>(8)[0], 0x55555555U);
  EXPECT_EQ(at<int32_t>(8)[1], -5);
  ASSERT_TRUE(run(0x5c950457)); // vmerge.vvm v8, v9, v10, v0
  EXPECT_EQ(at<int32_t>(8)[0], 5);
  EXPECT_EQ(at<int32_t>(8)[1], 2);
  std::memset(state_.at(9), 0b1011, 1);
  ASSERT_TRUE(run(0x42982557)); // vcpop.m a0, v9
  EXPECT_EQ(result_, 3U);
}

TEST_F(VectorTest, TailIsUndisturbed) {
  std::memset(state_.at(8), 0x55, 32);
  setVector(state_, 0x0d05f557, 3, 0);
  ASSERT_TRUE(run(0x02950457)); // vadd.vv v8, v9, v10
  EXPECT_EQ(at<int32_t>(8)[2], 0);
  EXPECT_EQ(at<uint32_t>(8)[3], 0x55555555U);
}

TEST_F(VectorTest, ReductionsAndMovesToScalars) {
  ASSERT_TRUE(run(0x02952457)); // vredsum.vs v8, v9, v10
  EXPECT_EQ(at<uint32_t>(8)[0], 3U + 5 - 7 + 0 + 2147483647U + 2147483648U + 100000 - 3 + 12);
  at<int32_t>(9)[0] = -9;
  ASSERT_TRUE(run(0x42902557)); // vmv.x.s a0, v9
  EXPECT_EQ(result_, static_cast<uint64_t>(int64_t{-9}));
}

TEST_F(VectorTest, Permutations) {
  ASSERT_TRUE(run(0x5208a457)); // vid.v v8
  for (unsigned i = 0; i < numElements; ++i)
    EXPECT_EQ(at<uint32_t>(8)[i], i);
  ASSERT_TRUE(run(0x3e913457)); // vslidedown.vi v8, v9, 2
  EXPECT_EQ(at<int32_t>(8)[0], 0);
  EXPECT_EQ(at<int32_t>(8)[3], 100000);
  EXPECT_EQ(at<int32_t>(8)[6], 0);  // beyond the group
  ASSERT_TRUE(run(0x3a956457, 42)); // vslide1up.vx v8, v9, a0
  EXPECT_EQ(at<int32_t>(8)[0], 42);
  EXPECT_EQ(at<int32_t>(8)[7], -3);
  ASSERT_TRUE(run(0x32950457)); // vrgather.vv v8, v9, v10
  EXPECT_EQ(at<int32_t>(8)[0], 2147483647);
  EXPECT_EQ(at<int32_t>(8)[4], 0); // index -1 is out of range
}

TEST_F(VectorTest, WidensAndNarrows) {
  setVector(state_, 0xccf27057, 0, 0); // e16, mf2, 4 elements
  const int16_t left[4] = {300, -300, 7, -32768}, right[4] = {200, 200, -7, -32768};
  std::memcpy(state_.at(10), left, sizeof left);
  std::memcpy(state_.at(11), right, sizeof right);
  ASSERT_TRUE(run(0xeea5a457)); // vwmul.vv v8, v10, v11
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(at<int32_t>(8)[i], int32_t{left[i]} * right[i]);
  const uint32_t wide[4] = {0x12345, 0xfffffff0, 16, 0};
  std::memcpy(state_.at(10), wide, sizeof wide);
  ASSERT_TRUE(run(0xb2a23457)); // vnsrl.wi v8, v10, 4
  EXPECT_EQ(at<uint16_t>(8)[0], 0x1234);
  EXPECT_EQ(at<uint16_t>(8)[1], 0xffff);
}

TEST_F(VectorTest, FloatArithmetic) {
  setFloats();
  auto canonical = [](float v) { return v != v ? std::bit_cast<float>(canonicalNan32) : v; };
  check<float>(0x02951457, [&](float a, float b) { return canonical(a + b); }); // vfadd.vv v8, v9, v10
  check<float>(0x26951457,
               [](float a, float b) { return std::copysign(a, std::signbit(b) ? 1.0F : -1.0F); }); // vfsgnjn
  check<float>(0x4e901457, [&](float a, float) { return canonical(std::sqrt(a)); });               // vfsqrt.v v8, v9
  ASSERT_TRUE(run(0x1a951457));     // vfmax.vv v8, v9, v10
  EXPECT_EQ(at<float>(8)[5], 1.0F); // the number wins over NaN
  EXPECT_FALSE(std::signbit(at<float>(8)[2]));
  for (unsigned i = 0; i < numElements; ++i)
    at<float>(8)[i] = 0.25F;
  ASSERT_TRUE(run(0xb2955457, 0xffffffff40000000)); // vfmacc.vf v8, fa0 = 2.0, v9
  EXPECT_EQ(at<float>(8)[0], std::fma(2.0F, 1.5F, 0.25F));
  ASSERT_TRUE(run(0xbea49457)); // vfnmsac.vv v8, v9, v10
  EXPECT_EQ(at<float>(8)[0], std::fma(-1.5F, 0.5F, 3.25F));
  ASSERT_TRUE(run(0x6e951057)); // vmflt.vv v0, v9, v10
  EXPECT_EQ(state_.registers[0], 0b00001010);
  ASSERT_TRUE(run(0x42901557)); // vfmv.f.s fa0, v9
  EXPECT_EQ(result_, 0xffffffff3fc00000);
}

TEST_F(VectorTest, Conversions) {
  setFloats();
  ASSERT_TRUE(run(0x4a909457));    // vfcvt.x.f.v v8, v9
  EXPECT_EQ(at<int32_t>(8)[0], 2); // to even
  EXPECT_EQ(at<int32_t>(8)[7], 2);
  EXPECT_EQ(at<int32_t>(8)[4], 2147483647);
  EXPECT_EQ(at<int32_t>(8)[5], 2147483647);
  ASSERT_TRUE(run(0x4a939457)); // vfcvt.rtz.x.f.v v8, v9
  EXPECT_EQ(at<int32_t>(8)[0], 1);
  EXPECT_EQ(at<int32_t>(8)[1], -2);
  setVector(state_, 0xccf27057, 0, 0); // e16, mf2
  const uint16_t halves[4] = {0x3c00, 0xc000, 0x7c00, 0x0001};
  std::memcpy(state_.at(10), halves, sizeof halves);
  ASSERT_TRUE(run(0x4aa61457)); // vfwcvt.f.f.v v8, v10
  EXPECT_EQ(at<float>(8)[0], 1.0F);
  EXPECT_EQ(at<float>(8)[1], -2.0F);
  EXPECT_EQ(at<float>(8)[3], 0x1p-24F);
  std::memcpy(state_.at(10), state_.at(8), 16);
  ASSERT_TRUE(run(0x4aaa1457)); // vfncvt.f.f.w v8, v10
  EXPECT_EQ(std::memcmp(state_.at(8), halves, sizeof halves), 0);
}

TEST_F(VectorTest, RoundsToOdd) {
  ASSERT_EQ(state_.set(0xd0, 4), 4u); // e32, m1: from e64
  const double wide[4] = {1.0, 1.0 + 0x1p-40, -1e300, 0x1p-160};
  std::memcpy(state_.at(10), wide, sizeof wide);
  ASSERT_TRUE(run(0x4aaa9457)); // vfncvt.rod.f.f.w v8, v10
  EXPECT_EQ(at<float>(8)[0], 1.0F);
  EXPECT_EQ(at<float>(8)[1], 1.0F + 0x1p-23F);
  EXPECT_EQ(at<float>(8)[2], -0x1.fffffep127F);
  EXPECT_EQ(at<float>(8)[3], 0x1p-149F);
}

TEST(VectorDecodeTest, RejectsWhatIsNotThere) {
  EXPECT_EQ(decode(0x82950457).opcode, Opcode::Illegal); // vsaddu.vv v8, v9, v10
  EXPECT_EQ(decode(0x03056407).opcode, Opcode::Illegal); // vle32ff.v v8, (a0)
  EXPECT_EQ(decode(0x02056407).rd, firstVectorRegister + 8);
}

VectorWork workWith(uint32_t word, uint64_t vtype, uint64_t vl) {
  VectorType type{32};
  EXPECT_EQ(type.set(vtype, vl), vl);
  EXPECT_EQ(VectorType::unpack(type.packed(), 32).packed(), type.packed());
  return workOf(decode(word), type);
}

TEST(VectorWorkTest, CountsElementsBytesAndRegisters) {
  constexpr uint64_t e32m1 = 0xd0, e32m4 = 0xd2, e16mf2 = 0xcf, e32m2 = 0xd1;
  VectorWork add = workWith(0x02950457, e32m4, 27); // vadd.vv v8, v9, v10
  EXPECT_EQ(add.bytes, 27 * 4);
  EXPECT_EQ(add.writes, 4);
  EXPECT_EQ(add.readsSecond, 4);
  VectorWork multiply = workWith(0xeea5a457, e16mf2, 4); // vwmul.vv v8, v10, v11
  EXPECT_EQ(multiply.bytes, 4 * 4);
  EXPECT_EQ(multiply.writes, 1);
  VectorWork narrow = workWith(0xb2a23457, e32m2, 16); // vnsrl.wi v8, v10, 4
  EXPECT_EQ(narrow.bytes, 16 * 8);
  EXPECT_EQ(narrow.writes, 2);
  EXPECT_EQ(narrow.readsSecond, 4);
  VectorWork compare = workWith(0x6e950057, e32m4, 32); // vmslt.vv v0, v9, v10
  EXPECT_EQ(compare.writes, 1);
  EXPECT_EQ(compare.readsSecond, 4);
  VectorWork load = workWith(0x02056407, e32m1, 5); // vle32.v v8, (a0)
  EXPECT_EQ(load.bytes, 20);
  EXPECT_FALSE(load.isElementwise);
  VectorWork segments = workWith(0x22056407, e32m2, 9); // vlseg2e32.v v8, (a0)
  EXPECT_EQ(segments.elements, 18);
  EXPECT_EQ(segments.writes, 4);
  EXPECT_TRUE(segments.isElementwise);
  EXPECT_TRUE(workWith(0x0e951457, e32m1, 8).isOrdered);  // vfredosum.vs v8, v9, v10
  EXPECT_FALSE(workWith(0x06951457, e32m1, 8).isOrdered); // vfredusum.vs v8, v9, v10
}

} // namespace
} // namespace nearbank::sim
