// The inputs of a run: given with it, or staged before it.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device_tensor.h"

namespace tessera {

class RunInputs {
 public:
  // All must outlive this.
  RunInputs(const Graph& graph, Device& device, Queue& queue)
      : graph_(graph), device_(device), queue_(queue), sources_(graph.inputs().size()) {}

  // From now on take() points `argument` at that byte of the input; it must stay where it is.
  void connect(size_t input, int64_t offset, const void*& argument) {
    connections_.push_back({&argument, input, offset});
  }
  void disconnect_all() { connections_.clear(); }

  // As Executable::stage(). When it throws, what was staged before stays.
  void stage(const std::map<std::string, Tensor>& tensors);
  void stage(const DeviceFeeds& tensors);
  // Points the connected arguments at these tensors, of the host and on the device, and at staged ones for
  // inputs that are left out. Returns whether an input lies elsewhere than in the run before.
  bool take(const std::map<std::string, Tensor>& tensors, const DeviceFeeds& there);

  // Where the last run reads the input from that byte on.
  const void* memory(size_t input, int64_t offset) const {
    return static_cast<const char*>(sources_[input].memory) + offset;
  }

 private:
  // What a run was given on the device, and when the queue has copied it.
  struct Copied {
    DeviceTensor tensor;
    std::shared_ptr<Event> done;
  };
  struct Source {
    const void* memory = nullptr;
    // Both null where the run reads the caller's memory.
    std::unique_ptr<InputBuffer> buffer;
    std::shared_ptr<void> copy;           // where the device has no such buffers
    bool loaded = false;                  // into the buffer, for the next run
    std::shared_ptr<void> copy_of_there;  // of what is given on the device, where that is not read in place
    std::array<Copied, 2> copied;         // by turns: of the runs that may be under way
    size_t copies = 0;
    // What runs read that are not given the input; its memory is read where it lies.
    std::optional<Tensor> staged;
    std::optional<DeviceTensor> staged_there;
    bool is_staged() const { return staged.has_value() || staged_there.has_value(); }
  };
  struct Connection {
    const void** argument;
    size_t input;
    int64_t offset;
  };
  // One of the two.
  struct Given {
    const Value* input;
    const Tensor* tensor;
    const DeviceTensor* there = nullptr;
  };

  const Value& find(const std::string& name) const;
  void check_there(const Value& input, const DeviceTensor& tensor) const;
  void load(const Given& given);
  const void* copy_there(Source& source, const DeviceTensor& tensor);
  const void* copy_to_device(Source& source, const Tensor& tensor);

  const Graph& graph_;
  Device& device_;
  Queue& queue_;
  std::vector<Source> sources_;  // by input
  std::vector<Connection> connections_;
  bool moved_ = false;  // since the last take()
};

}  // namespace tessera
