// What a run leaves and starts from: variables by name, in torchvision's layout where they have one, and
// metadata.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/executable.h"
#include "tessera/data/safetensors.h"
#include "tessera/nn/context.h"

namespace tessera {

struct Checkpoint {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// What one rank alone has of a tensor: the elements from the `first` on.
struct CheckpointPart {
  int64_t first = 0;
  std::function<Tensor()> contents;
};

// One whose tensors are still on a device: each is read when it is asked for. Of a tensor that ranks share
// out all of them read the contents, in one order, which go from each to all.
struct CheckpointSource {
  std::map<std::string, data::SafetensorsSource> tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, CheckpointPart> parts = {};  // of such tensors
};

// Safetensors, complete or not at all. Throws Error(io).
void save(const Checkpoint& checkpoint, const std::filesystem::path& path);
// The same file, for which no more than one tensor is on the host at a time.
void save(const CheckpointSource& checkpoint, const std::filesystem::path& path);
// All tensors of it.
Checkpoint read(const CheckpointSource& source);
// Throws Error(io) or Error(invalid_file) naming the file.
Checkpoint load_checkpoint(const std::filesystem::path& path);

namespace train {

// The value of a variable that `name` has on the device, in the file layout of `variable`. All must outlive
// what is returned.
data::SafetensorsSource source_of(const Variables& variables, const nn::Variable& variable,
                                  const std::string& name);

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
