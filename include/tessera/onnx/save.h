// Writes networks in the ONNX format (https://onnx.ai, IR version 9), for others to run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/nn/task.h"
#include "tessera/passes/pass.h"

namespace tessera::onnx {

// Of the format's own domain, in what is written: ONNX Runtime reads it from 1.17 on.
inline constexpr int64_t kWrittenOperatorSet = 20;
// The first in which convolutions and pools take bf16, for what is written in that: from 1.22 on.
inline constexpr int64_t kBfloatOperatorSet = 22;
// Of one file of the format: beyond, its weights lie in a file beside it.
inline constexpr uint64_t kMostModelBytes = (uint64_t{1} << 31) - 1;

struct SaveOptions {
  // fp16, bf16: products, convolutions and what lies between them in that type, with their weights; inputs
  // and outputs keep theirs, and what Precision keeps in fp32 stays so.
  Precision precision = Precision::fp32;
  // Large weights in a file beside the model, NAME.onnx.data, which is to be kept with it; also without being
  // asked for where the model would have more than most_bytes.
  bool external_data = false;
  uint64_t most_bytes = kMostModelBytes;
  // Kept in the file beside the network, by name; what people read or a program looks up.
  std::map<std::string, std::string> metadata = {};
};

// Writes a graph for inference: its inputs and outputs under their names, symbols of their shapes as symbolic
// dimensions, its parameters, states and constants as initializers. `weights` holds the contents of those
// that have no initial value. Operators that the format lacks are written as the simpler ones that they stand
// for; random numbers become further inputs, "noise" (normal) and "uniform". Each file is complete or not
// there at all, the model the last. Throws Error(unsupported) naming the node that the format cannot say,
// Error(invalid_argument) naming a variable that `weights` lacks or has in another shape, and Error(io).
void save(const Graph& graph, const std::map<std::string, Tensor>& weights, const std::filesystem::path& path,
          const SaveOptions& options = {});

// What a task serves, at any batch size: its inputs as `predict` takes them, normalization included. The
// variables are in the layout of files, as Trainer::checkpoint() gives them. Throws Error(invalid_argument)
// when the task serves nothing, and as above.
void save(const nn::Task& task, const std::map<std::string, Tensor>& variables,
          const std::filesystem::path& path, const SaveOptions& options = {});

}  // namespace tessera::onnx
