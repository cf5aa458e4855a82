// Half-precision conversion, tensors, random numbers and text helpers.
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/base/half.h"
#include "tessera/base/random.h"
#include "tessera/base/tensor.h"
#include "tessera/base/text.h"

#include "support/expect_error.h"

namespace tessera {
namespace {

TEST(Float16, EveryFiniteValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    Float16 value;
    value.bits = static_cast<uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(wide))));
    } else {
      EXPECT_EQ(Float16(wide).bits, value.bits) << bits;
    }
  }
}

TEST(Float16, RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(static_cast<float>(Float16(2049.0F)), 2048.0F);  // half way, to even
  EXPECT_EQ(static_cast<float>(Float16(2051.0F)), 2052.0F);
  EXPECT_EQ(static_cast<float>(Float16(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(Float16(65520.0F))));
  EXPECT_EQ(static_cast<float>(Float16(0x1p-24F)), 0x1p-24F);  // smallest subnormal
  EXPECT_EQ(static_cast<float>(Float16(0x1p-26F)), 0.0F);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(static_cast<float>(BFloat16(1.0F + 0x1p-7F + 0x1p-8F)), 1.0F + 0x1p-6F);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(3.4e38F))));
}

TEST(Tensor, ChecksTypesShapesAndSizes) {
  Tensor tensor(DataType::fp32, {2, 3});
  EXPECT_EQ(tensor.size(), 6);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw()) % 64, 0u);
  EXPECT_ERROR(tensor.data<double>(), ErrorCode::invalid_argument, "fp32", "fp64");
  EXPECT_ERROR((Tensor::from<float>({2}, {1.0F})), ErrorCode::invalid_argument, "[2]");
  EXPECT_ERROR(Tensor(DataType::fp32, {-1}), ErrorCode::invalid_argument, "negative");
  EXPECT_ERROR(Tensor(DataType::fp32, {1ll << 40, 1ll << 40}), ErrorCode::out_of_memory, "elements");
  EXPECT_ERROR(tensor.reshape({7}), ErrorCode::invalid_argument, "[2, 3]", "[7]");
}

TEST(Tensor, StoresDoublesWithRoundingAndSaturation) {
  Tensor bytes(DataType::int8, {3});
  bytes.set(0, 300);
  bytes.set(1, -300);
  bytes.set(2, NAN);
  EXPECT_EQ(bytes.to_doubles(), (std::vector<double>{127, -128, 0}));
  EXPECT_EQ(Tensor::full(DataType::boolean, {1}, 7).at(0), 1);
  EXPECT_EQ(Tensor::full(DataType::fp32, {2}, 0.5).cast(DataType::bf16).at(1), 0.5);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor a = Tensor::full(DataType::fp32, {2}, 1);
  Tensor shared = a;
  Tensor clone = a.clone();
  a.set(0, 5);
  EXPECT_EQ(shared.at(0), 5);
  EXPECT_EQ(clone.at(0), 1);
}

// The known-answer test that comes with the Random123 library: counter and key all zero.
TEST(Philox, MatchesTheKnownAnswer) {
  const auto words = philox({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(words[0], 0x6627e8d5u);
  EXPECT_EQ(words[1], 0xe169c58du);
  EXPECT_EQ(words[2], 0xbc57ac4cu);
  EXPECT_EQ(words[3], 0x9b00dbd8u);
}

TEST(Random, IsAFunctionOfSeedStreamAndIndex) {
  const Random random(3, 5);
  EXPECT_EQ(random.word(17), Random(3, 5).word(17));
  EXPECT_NE(random.word(17), Random(4, 5).word(17));
  EXPECT_NE(random.word(17), Random(3, 6).word(17));
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 20000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double value = random.normal(i);
    sum += value;
    squares += value * value;
    EXPECT_LT(random.uniform(i), 1.0F);
    EXPECT_LT(random.below(i, 7), 7u);
  }
  // Five standard deviations of the estimates.
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0 / kCount));
}

TEST(Random, BlocksAreTheirFourNumbers) {
  const Random random(3, 5);
  for (const uint64_t block : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 40}) {
    const std::array<float, 4> uniforms = random.uniforms(block);
    const std::array<double, 4> normals = random.normals(block);
    for (uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(uniforms[i], random.uniform(4 * block + i));
      EXPECT_EQ(normals[i], random.normal(4 * block + i));
    }
  }
}

TEST(Text, SuggestsNearNamesOnly) {
  const std::vector<std::string> names{"learning_rate", "momentum"};
  EXPECT_EQ(nearest_name("learing_rate", names), "learning_rate");
  EXPECT_EQ(nearest_name("zzzzzzzz", names), "");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

}  // namespace
}  // namespace tessera
