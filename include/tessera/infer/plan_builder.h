// Writes plan files.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tessera/infer/plan.h"

namespace tessera::infer {

// Collects the sizes of one network. Contents that several have in common are kept once.
class PlanBuilder {
 public:
  // `options` are those of every size.
  PlanBuilder(std::string network, const DeviceDescription& device, const CompileOptions& options);

  // Bound, where its device executes; elsewhere `value` gives the contents of its variables. Throws as
  // Executable::prepared() and as compiling it again, and Error(invalid_argument) for a batch that is there
  // already.
  void add(int64_t batch, const Executable& executable, const VariableSource& value = {});

  // The file appears complete or not at all. Throws Error(invalid_argument) where the sizes do not fit
  // together (inputs_of()), or there is none, and Error(io).
  void write(const std::filesystem::path& path) const;

  const PlanDescription& description() const { return description_; }
  int64_t weight_bytes() const;  // of all sizes together

 private:
  // The name under which the contents are kept: one that nothing else in the graph has.
  std::string keep(const std::string& name, const Tensor& contents, const Graph& graph);

  PlanDescription description_;
  std::map<std::string, Tensor> weights_;
  std::map<std::string, std::string> artifacts_;  // KernelArtifacts
};

}  // namespace tessera::infer
