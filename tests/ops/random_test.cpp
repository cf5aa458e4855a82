#include "tessera/base/random.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "ops/examples.h"

namespace tessera::testing {
namespace {

Tensor counter(int64_t seed, int64_t step) {
  return Tensor::from<int64_t>({2}, {seed, step});
}

Tensor draw(const std::string& name, int64_t seed, int64_t step, int64_t stream, int64_t count,
            DataType type = DataType::fp32) {
  return run_operator(name, {counter(seed, step)},
                      {{"shape", SymbolicShape{count}}, {"stream", stream}, {"type", type}})[0];
}

// The definition of base/random.h, written out once more.
TEST(RandomUniform, IsPhiloxOfSeedStreamAndStep) {
  const int64_t seed = 0x123456789abcdef0;
  const Tensor numbers = draw("random_uniform", seed, 7, 3, 9);
  for (int64_t i = 0; i < 9; ++i) {
    const auto words = philox({static_cast<uint32_t>(i / 4), 0, 3, 7}, {0x9abcdef0u, 0x12345678u});
    EXPECT_EQ(numbers.at(i), (words[static_cast<size_t>(i % 4)] >> 8) * 0x1p-24) << i;
  }
}

// Known answers of Random123, kat_vectors: philox4x32 10.
TEST(Philox, HasTheAuthorsKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomUniform, StaysBelowOneInEveryType) {
  for (const DataType type : {DataType::fp32, DataType::fp64, DataType::fp16, DataType::bf16}) {
    const Tensor numbers = draw("random_uniform", 1, 2, 3, 5000, type);
    double sum = 0;
    for (int64_t i = 0; i < numbers.size(); ++i) {
      ASSERT_GE(numbers.at(i), 0);
      ASSERT_LT(numbers.at(i), 1);
      sum += numbers.at(i);
    }
    // Five standard deviations of the mean, and that they are cut off to bf16's 8 digits, by up to 2^-8.
    EXPECT_NEAR(sum / 5000, 0.5, 5 / std::sqrt(12.0 * 5000) + 0x1p-9) << to_string(type);
  }
}

TEST(RandomUniform, SeedStepAndStreamTellApart) {
  const Tensor base = draw("random_uniform", 1, 2, 3, 8);
  EXPECT_TRUE(base.identical(draw("random_uniform", 1, 2, 3, 8)));
  EXPECT_FALSE(base.identical(draw("random_uniform", 2, 2, 3, 8)));
  EXPECT_FALSE(base.identical(draw("random_uniform", 1, 3, 3, 8)));
  EXPECT_FALSE(base.identical(draw("random_uniform", 1, 2, 4, 8)));
}

TEST(RandomNormal, HasMeanVarianceAndIndependentPairs) {
  const int64_t count = 20000;
  const std::vector<double> x = draw("random_normal", 5, 0, 0, count, DataType::fp64).to_doubles();
  double sum = 0;
  double squares = 0;
  double products = 0;
  for (size_t i = 0; i < x.size(); i += 2) {
    sum += x[i] + x[i + 1];
    squares += x[i] * x[i] + x[i + 1] * x[i + 1];
    products += x[i] * x[i + 1];
  }
  // Four standard deviations of the estimates.
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2.0 / count));
  EXPECT_NEAR(products / (count / 2), 0, 4 / std::sqrt(count / 2));
  EXPECT_EQ(x[5], Random(5, step_stream(0, 0)).normal(5));
}

TEST(Dropout, ScalesWhatItKeeps) {
  const int64_t count = 10000;
  const Tensor x = Tensor::full(DataType::fp32, {count}, 3);
  const Tensor y = run_operator("dropout", {x, counter(1, 1)}, {{"rate", 0.25}, {"stream", 6}})[0];
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (y.at(i) == 0) continue;
    EXPECT_EQ(y.at(i), 4);
    ++kept;
  }
  // Five standard deviations of a share.
  EXPECT_NEAR(static_cast<double>(kept) / count, 0.75, 5 * std::sqrt(0.75 * 0.25 / count));
}

TEST(Dropout, TheBackwardHalfMakesTheSameMask) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {100}});
  Value* seed = graph.add_input(InputRole::input, "counter", {DataType::int64, {2}});
  Value* y = ops::dropout(x, seed, 0.5, 1);
  const std::vector<Value*> sources{x};
  Value* gradient = differentiate(graph, ops::reduce_sum(y), sources)[0];
  graph.add_output("y", y);
  graph.add_output("gradient", gradient);
  const auto result =
      run_reference(graph, std::vector{Tensor::full(DataType::fp32, {100}, 1), counter(9, 4)}).outputs;
  EXPECT_TRUE(result[0].identical(result[1]));
}

}  // namespace
}  // namespace tessera::testing
