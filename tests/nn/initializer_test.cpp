// Starting values: their statistics, and that they depend on seed and name alone.
#include "tessera/nn/initializer.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/base/random.h"

namespace tessera::testing {
namespace {

struct Statistics {
  double mean = 0;
  double deviation = 0;
  double minimum = 0;
  double maximum = 0;
};

Statistics statistics_of(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  const auto count = static_cast<double>(values.size());
  Statistics result;
  for (double value : values) result.mean += value / count;
  for (double value : values) result.deviation += (value - result.mean) * (value - result.mean) / count;
  result.deviation = std::sqrt(result.deviation);
  result.minimum = *std::min_element(values.begin(), values.end());
  result.maximum = *std::max_element(values.begin(), values.end());
  return result;
}

// A convolution's weight [outputs, height, width, inputs]: 36 864 numbers, fans of 288 and 1152.
const Shape kWeight{128, 3, 3, 32};

Statistics draw(const nn::Initializer& initializer) {
  return statistics_of(nn::initialize(initializer, "conv.weight", kWeight, 7));
}

// Mean 0 within five standard errors; so the deviation, whose error is 1 / sqrt(2 n) for normal numbers and
// less for those that are cut.
void expect_spread(const Statistics& s, double deviation) {
  const double count = 128 * 3 * 3 * 32;
  EXPECT_NEAR(s.mean, 0, 5 * deviation / std::sqrt(count));
  EXPECT_NEAR(s.deviation, deviation, 5 * deviation / std::sqrt(2 * count));
}

TEST(Initializer, FansCountTheKernel) {
  EXPECT_EQ(nn::fans_of(kWeight).in, 3 * 3 * 32);
  EXPECT_EQ(nn::fans_of(kWeight).out, 3 * 3 * 128);
  EXPECT_EQ(nn::fans_of({10, 400}).in, 400);
  EXPECT_EQ(nn::fans_of({10, 400}).out, 10);
}

TEST(Initializer, NormalOnesHaveTheirDeviation) {
  expect_spread(draw(nn::normal(0.5)), 0.5);
  expect_spread(draw(nn::kaiming_normal_fan_out()), std::sqrt(2.0 / 1152));
  const Statistics shifted = statistics_of(nn::initialize(nn::normal(0.5, 3), "w", kWeight, 7));
  EXPECT_NEAR(shifted.mean, 3, 5 * 0.5 / std::sqrt(36864));
  EXPECT_GT(draw(nn::normal(1)).maximum, 3.5);  // tails are there
}

TEST(Initializer, TruncationCutsAtTwoDeviations) {
  const Statistics s = draw(nn::truncated_normal(0.1));
  EXPECT_GE(s.minimum, -0.2);
  EXPECT_LE(s.maximum, 0.2);
  expect_spread(s, 0.1 * 0.879626);  // of a normal cut at two deviations
}

TEST(Initializer, UniformOnesKeepTheirBounds) {
  const auto expect_bound = [](const nn::Initializer& initializer, double bound) {
    const Statistics s = draw(initializer);
    // 1e-6: the bound itself is rounded to fp32.
    EXPECT_GE(s.minimum, -bound * (1 + 1e-6)) << initializer.name;
    EXPECT_LE(s.maximum, bound * (1 + 1e-6)) << initializer.name;
    EXPECT_GT(s.maximum, 0.99 * bound) << initializer.name;
    expect_spread(s, bound / std::sqrt(3.0));
  };
  expect_bound(nn::uniform(0.25), 0.25);
  expect_bound(nn::fan_in_uniform(), 1 / std::sqrt(288.0));
  expect_bound(nn::fan_in_uniform(100), 0.1);
  expect_bound(nn::xavier_uniform(), std::sqrt(6.0 / (288 + 1152)));
}

// Threads draw blocks of four: the bits are those of the numbers one by one, also where a block is cut.
TEST(Initializer, DrawsTheNumbersOfItsSeedAndName) {
  const Shape shape{70001, 3};
  const std::string name = "conv.weight";
  const Random random(7, hash_name(name.data(), name.size()));
  const auto expect_numbers = [&](const nn::Initializer& initializer, const auto& number) {
    const Tensor tensor = nn::initialize(initializer, name, shape, 7);
    const auto values = tensor.data<float>();
    size_t others = 0;
    for (size_t i = 0; i < values.size(); ++i) others += values[i] == static_cast<float>(number(i)) ? 0 : 1;
    EXPECT_EQ(others, 0U) << initializer.name;
  };
  expect_numbers(nn::normal(0.5, 3), [&](size_t i) { return 3 + 0.5 * random.normal(i); });
  expect_numbers(nn::kaiming_normal_fan_out(),
                 [&](size_t i) { return std::sqrt(2.0 / 70001) * random.normal(i); });
  expect_numbers(nn::uniform(0.25), [&](size_t i) { return (2.0 * random.uniform(i) - 1.0) * 0.25; });
  expect_numbers(nn::truncated_normal(2), [&](size_t i) {
    uint64_t attempt = 16 * i;
    while (std::abs(random.normal(attempt)) > 2) ++attempt;
    return 2 * random.normal(attempt);
  });
}

TEST(Initializer, ConstantsAreExact) {
  for (const auto& [initializer, value] :
       {std::pair{nn::zeros(), 0.0}, {nn::ones(), 1.0}, {nn::constant(0.375), 0.375}}) {
    const Tensor tensor = nn::initialize(initializer, "x", {5}, 1);
    for (int64_t i = 0; i < tensor.size(); ++i) EXPECT_EQ(tensor.at(i), value);
  }
}

// States may be counters, or of fewer bits.
TEST(Initializer, FillsTensorsOfAnyType) {
  const Tensor counter = nn::initialize(nn::constant(16777217), "x", {3}, 1, DataType::int64);
  EXPECT_EQ(counter.data_type(), DataType::int64);
  EXPECT_EQ(counter.at(2), 16777217);  // no fp32
  const Tensor single = nn::initialize(nn::uniform(8), "x", {64}, 1);
  for (const DataType type : {DataType::fp64, DataType::bf16, DataType::int32}) {
    const Tensor other = nn::initialize(nn::uniform(8), "x", {64}, 1, type);
    // Whole numbers are cut off; of numbers below 8 bf16 rounds by at most 2^-6, and fp32 by 2^-22.
    const double bound = type == DataType::int32 ? 1 : type == DataType::bf16 ? 0x1p-6 : 0x1p-22;
    for (int64_t i = 0; i < other.size(); ++i) EXPECT_NEAR(other.at(i), single.at(i), bound);
  }
}

TEST(Initializer, DependsOnSeedAndNameAlone) {
  const auto make = [](const std::string& name, uint64_t seed) {
    return nn::initialize(nn::normal(1), name, {64}, seed);
  };
  EXPECT_TRUE(make("fc1.weight", 1).identical(make("fc1.weight", 1)));
  EXPECT_FALSE(make("fc1.weight", 1).identical(make("fc1.weight", 2)));
  EXPECT_FALSE(make("fc1.weight", 1).identical(make("fc2.weight", 1)));
}

}  // namespace
}  // namespace tessera::testing
