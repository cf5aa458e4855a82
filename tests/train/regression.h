// A line through rows of numbers, some of which do not count: a task that is no classifier.
#pragma once

#include "tessera/nn/layers.h"
#include "tessera/train/trainer.h"

#include "train/list_source.h"
#include "train/tiny.h"

namespace tessera::testing {

// Rows of numbers, some of which do not count: inputs x fp32 [rows, 3], y fp32 [rows], counts fp32 [rows].
inline std::vector<Field> row_fields() {
  const Dimension rows = Dimension::symbol("rows");
  return {{"x", {DataType::fp32, {rows, 3}}},
          {"y", {DataType::fp32, {rows}}},
          {"counts", {DataType::fp32, {rows}}}};
}

inline data::Batch rows_of(int64_t first, int64_t rows, int64_t counting) {
  Tensor x(DataType::fp32, {rows, 3});
  Tensor y(DataType::fp32, {rows});
  Tensor counts(DataType::fp32, {rows});
  const Random random(5);
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i) {
      const double value = random.normal(static_cast<uint64_t>(3 * (first + row) + i));
      x.set(3 * row + i, value);
      sum += static_cast<double>(i + 1) * value;
    }
    y.set(row, sum);
    counts.set(row, row < counting ? 1 : 0);
  }
  return {.fields = {{"x", x}, {"y", y}, {"counts", counts}}, .sizes = {{"rows", rows}}, .samples = counting};
}

// The mean squared error of the rows that count.
inline nn::Task regression() {
  return {
      .name = "regression",
      .network = "linear",
      .inputs = row_fields(),
      .metrics = {{.name = "error"}},
      .training = [](nn::Context& context, const nn::Values& in) -> nn::Training {
        Value* y = ops::reshape(nn::linear(context, "line", in["x"], 1), in["y"]->shape());
        return {.objectives = {nn::mean_of("error", ops::square(ops::subtract(y, in["y"])), in["counts"])}};
      }};
}

inline train::TrainerOptions on_cpu(double rate = 0.05) {
  return {.optimizer = optim::sgd({.learning_rate = rate, .momentum = 0}), .device = Device::cpu()};
}

}  // namespace tessera::testing
