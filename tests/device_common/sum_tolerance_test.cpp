// That tolerances of statistics let honest rounding pass and nothing else: computed on the host, so that what
// the tests of a GPU would not see is seen here.
#include "support/sum_tolerance.h"

#include <algorithm>
#include <bit>

#include "support/compare.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

struct StatisticsCase {
  std::string name;
  DataType type = DataType::fp16;  // fp32: products in TF32
  int64_t pixels = 1;
  int64_t row = 1;  // pixels of a row of the images
  int64_t inputs = 64;
  int64_t outputs = 64;
  bool after_relu = false;  // the input is a relu's result: sums are far from zero

  bool tf32() const { return type == DataType::fp32; }
};

// Few pixels and many, few products and many, as the tests of the kernels have them.
std::vector<StatisticsCase> cases(const std::vector<std::pair<std::string, DataType>>& types) {
  std::vector<StatisticsCase> result;
  for (const auto& [name, type] : types) {
    for (const bool relu : {false, true}) {
      const std::string prefix = name + (relu ? "Relu" : "");
      result.push_back({prefix + "FewPixels", type, 3 * 7 * 9, 9, 64, 128, relu});
      result.push_back({prefix + "ManyPixels", type, 5 * 31 * 33, 33, 64, 32, relu});
      result.push_back({prefix + "ManyProducts", type, 2 * 31 * 33, 33, 256, 32, relu});
    }
  }
  return result;
}

float tf32_nearest(float value) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000U) & ~0x1fffU);
}
float tf32_cut_off(float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~0x1fffU);
}

// Towards zero, as Tensor Cores add.
float cut_off(double value) {
  const auto nearest = static_cast<float>(value);
  const bool beyond = std::abs(static_cast<double>(nearest)) > std::abs(value);
  return beyond ? std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) - 1) : nearest;
}

// Of one channel after the other: the sums, then the sums of squares.
struct Statistics {
  std::vector<double> sums;
  std::vector<double> squares;
};

class Simulation {
 public:
  explicit Simulation(const StatisticsCase& own) : own_(own) {
    x_ = numbers({own.pixels, own.inputs}, 1, own.tf32() ? DataType::fp32 : own.type);
    weight_ = numbers({own.outputs, own.inputs}, 2, own.tf32() ? DataType::fp32 : own.type);
    for (float& value : x_) value = own.after_relu ? std::max(value, 0.0F) : value;
    // Weights that a device rounds are off by the same in every term.
    for (float& value : weight_) value = own.tf32() ? tf32_nearest(value) : value;
    exact_ = stored(results(x_, false));
    device_ = results(own.tf32() ? each(x_, tf32_nearest) : x_, true);
  }

  SummedTerms terms() const {
    const double x_size = root_mean_square_of_uniform(2) / (own_.after_relu ? std::sqrt(2.0) : 1);
    return summed_statistics({.terms = own_.inputs,
                              .first_size = x_size,
                              .second_size = root_mean_square_of_uniform(2),
                              .factors = own_.tf32() ? Factors::rounded : Factors::exact},
                             own_.type, own_.pixels);
  }

  // As the reference interpreter: rounded results, added in double.
  Statistics reference() const { return add<double>(exact_, own_.pixels); }
  // As devices add, in fp32, what they stored or what they had before.
  Statistics of_stored(int64_t pixels) const { return add<float>(stored(device_), pixels); }
  Statistics of_unrounded() const { return add<float>(device_, own_.pixels); }
  // Of factors whose last bits are cut off.
  Statistics of_cut_factors() const { return add<float>(results(each(x_, tf32_cut_off), true), own_.pixels); }
  Statistics of_zeros() const {
    const auto channels = static_cast<size_t>(own_.outputs);
    return {std::vector<double>(channels, 0), std::vector<double>(channels, 0)};
  }

 private:
  static std::vector<float> numbers(const Shape& shape, uint64_t seed, DataType type) {
    const std::vector<double> drawn = random_tensor(type, shape, -2, 2, seed).to_doubles();
    return {drawn.begin(), drawn.end()};
  }

  static std::vector<float> each(std::vector<float> values, float (*change)(float)) {
    std::transform(values.begin(), values.end(), values.begin(), change);
    return values;
  }

  std::vector<double> stored(const std::vector<double>& values) const {
    return Tensor::from_doubles(own_.type, {static_cast<int64_t>(values.size())}, values).to_doubles();
  }

  // [pixels, outputs]; with `cuts` the accumulator loses bits after every 8 products.
  std::vector<double> results(const std::vector<float>& x, bool cuts) const {
    std::vector<double> result;
    result.reserve(static_cast<size_t>(own_.pixels * own_.outputs));
    const auto inputs = static_cast<size_t>(own_.inputs);
    for (size_t pixel = 0; pixel < static_cast<size_t>(own_.pixels); ++pixel) {
      for (size_t output = 0; output < static_cast<size_t>(own_.outputs); ++output) {
        double sum = 0;
        for (size_t k = 0; k < inputs; ++k) {
          sum += static_cast<double>(x[pixel * inputs + k]) * weight_[output * inputs + k];
          if (cuts && k % 8 == 7) sum = cut_off(sum);
        }
        result.push_back(sum);
      }
    }
    return result;
  }

  // Of the first pixels.
  template <typename Accumulator>
  Statistics add(const std::vector<double>& results, int64_t pixels) const {
    Statistics result = of_zeros();
    const auto channels = static_cast<size_t>(own_.outputs);
    for (size_t i = 0; i < static_cast<size_t>(pixels) * channels; ++i) {
      const double y = results[i];
      double& sum = result.sums[i % channels];
      double& squares = result.squares[i % channels];
      sum = static_cast<Accumulator>(sum + y);
      squares = static_cast<Accumulator>(squares + y * y);
    }
    return result;
  }

  StatisticsCase own_;
  std::vector<float> x_, weight_;
  std::vector<double> exact_;   // rounded to the type once
  std::vector<double> device_;  // before they are rounded
};

// In parts of what is allowed, of the worst channel.
double worst(const std::vector<double>& actual, const std::vector<double>& expected,
             const Tolerance& tolerance) {
  double result = 0;
  for (size_t i = 0; i < actual.size(); ++i)
    result = std::max(result, excess(actual[i], expected[i], tolerance));
  return result;
}

class SumTolerance : public ::testing::TestWithParam<StatisticsCase> {};

TEST_P(SumTolerance, PassesHonestRoundingWithRoomToSpare) {
  const Simulation simulation(GetParam());
  const Statistics expected = simulation.reference();
  for (const Statistics& honest : {simulation.of_stored(GetParam().pixels), simulation.of_unrounded()}) {
    EXPECT_LT(worst(honest.sums, expected.sums, sum_tolerance(simulation.terms())), 0.7);
    EXPECT_LT(worst(honest.squares, expected.squares, square_sum_tolerance(simulation.terms())), 0.7);
  }
}

TEST_P(SumTolerance, FailsZerosAndWhatLeavesOutPixels) {
  const StatisticsCase& own = GetParam();
  const Simulation simulation(own);
  const Statistics expected = simulation.reference();
  const std::vector<std::pair<std::string, Statistics>> all{
      {"zeros", simulation.of_zeros()},
      {"a tenth left out", simulation.of_stored(own.pixels - own.pixels / 10)},
      {"one row left out", simulation.of_stored(own.pixels - own.row)}};
  for (const auto& [name, wrong] : all) {
    EXPECT_GT(worst(wrong.sums, expected.sums, sum_tolerance(simulation.terms())), 2) << name;
    EXPECT_GT(worst(wrong.squares, expected.squares, square_sum_tolerance(simulation.terms())), 2) << name;
  }
}

class SumToleranceOfTf32 : public SumTolerance {};

// The sums of terms of both signs do not tell: what is cut off is of both signs too.
TEST_P(SumToleranceOfTf32, FailsSquaresOfFactorsThatAreCutOff) {
  const Simulation simulation(GetParam());
  EXPECT_GT(worst(simulation.of_cut_factors().squares, simulation.reference().squares,
                  square_sum_tolerance(simulation.terms())),
            1.2);
}

const auto kNameOfCase = [](const auto& test) { return test.param.name; };
const std::pair<std::string, DataType> kTf32{"Tf32", DataType::fp32};

INSTANTIATE_TEST_SUITE_P(
    Statistics, SumTolerance,
    ::testing::ValuesIn(cases({{"Half", DataType::fp16}, {"BrainFloat", DataType::bf16}, kTf32})),
    kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Statistics, SumToleranceOfTf32, ::testing::ValuesIn(cases({kTf32})), kNameOfCase);

}  // namespace
}  // namespace tessera::testing
