// Trainings whose losses PyTorch has computed, too, from the same weights on the same batches: tests/golden.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tessera/nn/task.h"
#include "tessera/train/trainer.h"

namespace tessera::testing {

struct GoldenTraining {
  nlohmann::json golden;  // by the names of measures, and how far PyTorch's float32 is from them
  nn::Task task;
  train::TrainerOptions options;  // fp32 and the CPU where they say nothing else
  std::vector<Feeds> fields;      // of each step
  int64_t batch = 1;
  SymbolBindings sizes = {};
};

using Losses = std::map<std::string, std::vector<double>>;  // by the names of measures

nlohmann::json read_golden(const std::string& file);

// int32 by the formula, of so many classes.
Tensor golden_integers(const std::string& name, const Shape& shape, int64_t classes);
std::string numbered(const char* name, size_t step);

// Of each step, with the weights of the formula.
Losses losses_of(const GoldenTraining& training);

// No loss of the first twenty steps is farther from float64 than so many times PyTorch's own float32, and no
// later one by more than a thousandth.
void expect_golden(const GoldenTraining& training, const Losses& losses, double roundings);

}  // namespace tessera::testing
