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
  RunOutputs(const Graph& graph, Queue& queue)
      : graph_(graph), queue_(queue), fetched_(graph.outputs().size(), true) {}

  // As Executable::fetch(), by the place among the graph's outputs.
  void fetch(size_t output, Executable::Fetch where) { fetched_[output] = where == Executable::Fetch::host; }
  bool full() const { return pending_ == slots_.size(); }
  bool empty() const { return pending_ == 0; }

  // After a run that was enqueued: reads the outputs, which lie there in the graph's order. Without full().
  void begin(const std::vector<const void*>& memory);
  // The outputs of the oldest run that was begun. Without empty().
  std::map<std::string, Tensor> finish();
  void discard() { pending_ = 0; }

 private:
  // Of one run.
  struct Slot {
    std::vector<std::unique_ptr<OutputBuffer>> buffers;  // by output; null before its first fetch
    std::vector<bool> begun;                             // by output: on its way
    std::map<std::string, Tensor> tensors;               // those that were read at once
  };

  const Graph& graph_;
  Queue& queue_;
  std::vector<bool> fetched_;  // by output: to the host
  std::array<Slot, Executable::kMostSubmitted> slots_;
  size_t oldest_ = 0;
  size_t pending_ = 0;
};

}  // namespace tessera
