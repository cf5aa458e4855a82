// Plan files: a network compiled for one device at one or several batch sizes, with its weights
// (docs/plans.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/data/safetensors.h"
#include "tessera/graph/graph.h"

namespace tessera::infer {

// The network at one batch size, as Executable::prepared() gives it.
struct PlanSize {
  int64_t batch = 0;
  std::shared_ptr<const Graph> graph;
  KernelNames kernels;
};

// An input or output of the network. Where there are several sizes, the first extent that differs is `batch`.
struct PlanValue {
  std::string name;
  TensorType type;
};

// What must be the same where the plan is used.
struct PlanDevice {
  std::string name;                             // "cpu"
  std::string model;                            // "AMD EPYC ..., 2 threads"
  std::map<std::string, std::string> versions;  // library -> version; empty where it was planned for only
};

// What a plan says of itself, beside its weights.
struct PlanDescription {
  std::string network;  // of which it was made: "resnet50.onnx"
  std::string program;  // the version of Tessera that made it
  PlanDevice device;
  Precision precision = Precision::fp32;
  bool deterministic = true;    // PassOptions::deterministic
  std::vector<PlanSize> sizes;  // of growing batch, all different; at least one

  // The smallest size that takes so many rows; the largest where none does.
  const PlanSize& size_for(int64_t rows) const;
  // As which a size is compiled: no pass runs and nothing is tuned.
  CompileOptions compile_options(const PlanSize& size) const;
};

// Of the inputs of all sizes, or of their outputs. Throws Error(invalid_argument) naming one whose types
// differ otherwise than in a first extent that is the batch; with several sizes each output depends on that.
std::vector<PlanValue> inputs_of(const std::vector<PlanSize>& sizes);
std::vector<PlanValue> outputs_of(const std::vector<PlanSize>& sizes);

// A plan file opened for reading: all but the weights is read and checked. Faults in it throw
// Error(invalid_file) that names it. Reading from several threads is safe.
class Plan {
 public:
  static Plan open(const std::filesystem::path& path);
  // The same from memory, which must outlive the result. `name` stands in the messages.
  static Plan parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }  // of the file
  const PlanDescription& description() const { return description_; }
  const std::vector<PlanValue>& inputs() const { return inputs_; }
  const std::vector<PlanValue>& outputs() const { return outputs_; }

  // Throws Error(unsupported) with what the plan was made for and what this is, where device, libraries or
  // program are others.
  void check(const DeviceDescription& device) const;

  // Of the variables of all sizes, which share those of one name.
  std::vector<std::string> weight_names() const;
  Tensor weight(const std::string& name) const;

  // What kernels are made of, where the device keeps that: machine code, plans of libraries.
  std::map<std::string, std::string> artifacts() const;

  // One size for a device that check() takes, in the workspace, if there is one. Throws as
  // tessera::compile().
  std::unique_ptr<Executable> compile(const PlanSize& size, const std::shared_ptr<Device>& device,
                                      std::shared_ptr<Workspace> workspace = nullptr) const;

 private:
  Plan(data::SafetensorsFile file, std::string name);
  struct Offer;
  void check_weights();

  std::string name_;
  data::SafetensorsFile file_;
  PlanDescription description_;
  std::vector<PlanValue> inputs_;
  std::vector<PlanValue> outputs_;
  std::map<std::string, TensorType> weights_;
  std::shared_ptr<Offer> offer_;  // of the artifacts, as long as the plan or a copy lives
};

}  // namespace tessera::infer
