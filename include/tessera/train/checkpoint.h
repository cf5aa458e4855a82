// What a run leaves and starts from: variables by name, in torchvision's layout where they have one, and
// metadata.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/executable.h"
#include "tessera/nn/context.h"

namespace tessera {

struct Checkpoint {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Safetensors, complete or not at all. Throws Error(io).
void save(const Checkpoint& checkpoint, const std::filesystem::path& path);
// Throws Error(io) or Error(invalid_file) naming the file.
Checkpoint load_checkpoint(const std::filesystem::path& path);

namespace train {

// The values of these variables on the device, in file layout.
std::map<std::string, Tensor> read_variables(const Variables& variables,
                                             const std::vector<nn::Variable>& list);

// Sets every listed variable from tensors in file layout. Throws Error(invalid_file) naming `source` and the
// first variable that is missing or has another shape. Tensors that no variable wants are ignored when they
// are counters of torchvision ("num_batches_tracked") and refused by name otherwise, unless `allow_extra`.
void write_variables(Variables& variables, const std::vector<nn::Variable>& list,
                     const std::map<std::string, Tensor>& tensors, const std::string& source,
                     bool allow_extra = false);

// A starting value from the initializer; "random_counter" becomes {seed, 0}. Moving averages start as their
// parameters.
Tensor starting_value(const nn::Variable& variable, uint64_t seed);
void initialize_variables(Variables& variables, const std::vector<nn::Variable>& list, uint64_t seed);

}  // namespace train
}  // namespace tessera
