// Element types: the table of what is known of them, and elements of less than a byte.
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/elements.h"
#include "tessera/base/narrow_float.h"
#include "tessera/base/tensor.h"

#include "support/expect_error.h"

namespace tessera {
namespace {

TEST(DataType, NamesReadBack) {
  std::set<std::string_view> names;
  for (const DataType type : kAllDataTypes) {
    EXPECT_EQ(parse_data_type(to_string(type)), type);
    EXPECT_TRUE(names.insert(to_string(type)).second);
  }
  EXPECT_ERROR(parse_data_type("fp8_e4m3"), ErrorCode::invalid_argument, "did you mean", "fp8_e4m3fn");
  EXPECT_ERROR(size_of(DataType::int4), ErrorCode::invalid_argument, "int4", "less than a byte");
}

TEST(DataType, LimitsAreReachedAndNotPassed) {
  for (const DataType type : kAllDataTypes) {
    if (is_complex(type)) continue;
    const TypeTraits& traits = traits_of(type);
    Tensor tensor(type, {2});
    tensor.set(0, traits.lowest);
    tensor.set(1, traits.highest);
    EXPECT_EQ(tensor.at(0), traits.lowest) << traits.name;
    EXPECT_EQ(tensor.at(1), traits.highest) << traits.name;
    if (traits.kind == TypeKind::boolean || type == DataType::fp64) continue;
    const Tensor beyond = Tensor::from_doubles(DataType::fp64, {1}, std::vector{traits.highest * 1.5});
    const Tensor saturated = beyond.cast(type);
    if (is_integer(type) || bits_of(type) <= 8) {
      EXPECT_EQ(saturated.at(0), traits.highest) << traits.name;
    } else {
      EXPECT_TRUE(std::isinf(saturated.at(0))) << traits.name;
    }
  }
}

// One more digit is lost, but none of those that the table says.
TEST(DataType, DigitsAreThoseThatValuesKeep) {
  for (const DataType type : kAllDataTypes) {
    if (!is_floating(type)) continue;
    const double step = std::ldexp(1, 1 - traits_of(type).digits);
    const Tensor kept = Tensor::full(type, {1}, 1 + step);
    EXPECT_EQ(kept.at(0), 1 + step) << to_string(type);
    EXPECT_EQ(Tensor::full(type, {1}, 1 + step / 4).at(0), 1) << to_string(type);
  }
}

TEST(NarrowFloat, EveryNumberSurvivesTheRoundTrip) {
  for (const DataType type : kAllDataTypes) {
    if (!is_floating(type) || bits_of(type) > 8) continue;
    int numbers = 0;
    for (int code = 0; code < 1 << bits_of(type); ++code) {
      const float value = decode_narrow(type, static_cast<uint8_t>(code));
      if (std::isnan(value)) continue;
      ++numbers;
      EXPECT_EQ(encode_narrow(type, value, false), code) << to_string(type);
    }
    EXPECT_GE(numbers, bits_of(type) == 4 ? 16 : 250) << to_string(type);
  }
  static_assert(decode_narrow(DataType::fp8_e4m3fn, 0x7e) == 448.0F);
  static_assert(encode_narrow(DataType::fp8_e5m2, 1e6F, true) == 0x7b);
}

TEST(Packed, TheFirstElementHasTheLowestBits) {
  const Tensor nibbles = Tensor::from_doubles(DataType::int4, {3}, std::vector<double>{1, -1, 7});
  ASSERT_EQ(nibbles.bytes(), 2u);
  const auto* bytes = static_cast<const uint8_t*>(nibbles.raw());
  EXPECT_EQ(bytes[0], 0xf1);
  EXPECT_EQ(bytes[1], 0x07);
  EXPECT_EQ(nibbles.to_doubles(), (std::vector<double>{1, -1, 7}));
  const Tensor pairs = Tensor::from_doubles(DataType::int2, {5}, std::vector<double>{1, -2, -1, 0, 1});
  ASSERT_EQ(pairs.bytes(), 2u);
  EXPECT_EQ(static_cast<const uint8_t*>(pairs.raw())[0], 0b00'11'10'01);
  EXPECT_EQ(static_cast<const uint8_t*>(pairs.raw())[1], 1);
}

TEST(Packed, WritingOneElementLeavesItsNeighbors) {
  for (const DataType type : kAllDataTypes) {
    if (!is_packed(type)) continue;
    for (int64_t written = 0; written < 9; ++written) {
      Tensor tensor = Tensor::full(type, {9}, 1);
      tensor.set(written, 0);
      for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(tensor.at(i), i == written ? 0 : 1) << to_string(type);
    }
    EXPECT_EQ(tensor_bytes(type, {0, 4}), 0);
    EXPECT_EQ(tensor_bytes(type, {3, 3}), bits_of(type) == 4 ? 5 : 3);
  }
}

TEST(Packed, RunsAreCopiedFromAndToAnyPlace) {
  const Tensor source = Tensor::from_doubles(DataType::uint4, {7}, std::vector<double>{1, 2, 3, 4, 5, 6, 7});
  Tensor target = Tensor::full(DataType::uint4, {7}, 15);
  copy_run(DataType::uint4, source.raw(), 1, target.raw(), 2, 3);
  EXPECT_EQ(target.to_doubles(), (std::vector<double>{15, 15, 2, 3, 4, 15, 15}));
}

TEST(Cast, IntegersGoNoWayThroughDouble) {
  constexpr int64_t kLarge = (int64_t{1} << 60) + 1;
  const Tensor x = Tensor::from<int64_t>({3}, {kLarge, -1, std::numeric_limits<int64_t>::max()});
  const Tensor y = x.cast(DataType::uint64);
  EXPECT_EQ(y.data<uint64_t>()[0], static_cast<uint64_t>(kLarge));
  EXPECT_EQ(y.data<uint64_t>()[1], 0u);
  EXPECT_EQ(x.cast(DataType::uint64, false).data<uint64_t>()[1], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(y.cast(DataType::int64).data<int64_t>()[2], std::numeric_limits<int64_t>::max());
}

TEST(Complex, HasTwoPartsInOneMemory) {
  Tensor x = Tensor::full(DataType::complex64, {2}, 3);
  Tensor parts = x.parts();
  EXPECT_EQ(parts.shape(), (Shape{2, 2}));
  parts.set(3, -1);
  EXPECT_EQ(x.bytes(), 16u);
  EXPECT_EQ(x.parts().to_doubles(), (std::vector<double>{3, 0, 3, -1}));
  EXPECT_ERROR(x.at(0), ErrorCode::invalid_argument, "complex64");
  EXPECT_ERROR(x.cast(DataType::fp32), ErrorCode::invalid_argument, "complex64", "fp32");
  EXPECT_ERROR(parts.parts(), ErrorCode::invalid_argument, "fp32");
}

}  // namespace
}  // namespace tessera
