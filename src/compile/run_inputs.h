// The inputs of a run: given with it, or staged before it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"

namespace tessera {

class RunInputs {
 public:
  // Both must outlive this.
  RunInputs(const Graph& graph, Device& device)
      : graph_(graph), device_(device), sources_(graph.inputs().size()) {}

  // From now on take() points `argument` at the memory of that input; it must stay where it is.
  void connect(size_t input, const void*& argument) { connections_.push_back({&argument, input}); }
  void disconnect_all() { connections_.clear(); }

  // As Executable::stage(). When it throws, what was staged before stays.
  void stage(const std::map<std::string, Tensor>& tensors);
  // Points the connected arguments at these tensors, and at staged ones for inputs that are left out.
  void take(const std::map<std::string, Tensor>& tensors);

  // Where the last run reads the input.
  const void* memory(size_t input) const { return sources_[input].memory; }

 private:
  struct Source {
    const void* memory = nullptr;
    // Both null where the run reads the caller's memory.
    std::unique_ptr<InputBuffer> buffer;
    std::shared_ptr<void> copy;    // where the device has no such buffers
    bool loaded = false;           // into the buffer, for the next run
    std::optional<Tensor> staged;  // whose memory is read where it lies
  };
  struct Connection {
    const void** argument;
    size_t input;
  };
  struct Given {
    const Value* input;
    const Tensor* tensor;
  };

  void load(const Given& given);
  const void* copy_to_device(Source& source, const void* memory, int64_t bytes);

  const Graph& graph_;
  Device& device_;
  std::vector<Source> sources_;  // by input
  std::vector<Connection> connections_;
};

}  // namespace tessera
