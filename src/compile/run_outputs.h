// The outputs of runs, on their way to the host.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/executable.h"

namespace tessera {

class RunOutputs {
 public:
  // Both must outlive this.
  RunOutputs(const Graph& graph, Device& device) : graph_(graph), device_(device) {}

  bool full() const { return pending_ == slots_.size(); }
  bool empty() const { return pending_ == 0; }

  // Behind a run that was enqueued: reads the outputs, which lie there in the graph's order. Without full().
  void begin(const std::vector<const void*>& memory);
  // The outputs of the oldest run that was begun. Without empty().
  std::map<std::string, Tensor> finish();
  void discard() { pending_ = 0; }

 private:
  // Of one run.
  struct Slot {
    std::vector<std::unique_ptr<OutputBuffer>> buffers;  // by output; empty before the first run
    std::map<std::string, Tensor> tensors;               // those that were read at once
  };

  const Graph& graph_;
  Device& device_;
  std::array<Slot, Executable::kMostSubmitted> slots_;
  size_t oldest_ = 0;
  size_t pending_ = 0;
};

}  // namespace tessera
