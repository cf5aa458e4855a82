// What `bench --check` prints, which bench/compare and bench/curves hold against the peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_options.h"

namespace tessera::cli {

struct CheckOptions {
  int64_t steps = 2;  // with --train
  int64_t batches = 1;
  double learning_rate = kLearningRate;
  int64_t below = 2;  // of a network in a file: whole numbers that it reads
};

struct CheckedValues {
  std::string name;  // "outputs", or "losses" with --train
  std::vector<double> values;
};

// Ten logits, or the losses of some steps, of the network, images and labels that a formula gives
// (tests/golden/README.md); of a network in a file ten of its outputs, with its own weights. Throws
// Error(invalid_argument) for a recipe.
CheckedValues check_by_formula(const ModelArguments& arguments, const CheckOptions& options);

}  // namespace tessera::cli
