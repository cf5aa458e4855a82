#include "compile/run_outputs.h"

#include <cstring>

namespace tessera {
namespace {

// Losses and metrics, which are kept for long, are copied: memory for transfers is scarce. A large output
// costs more to copy than to compute.
constexpr int64_t kHandedOn = 64 << 10;

}  // namespace

void RunOutputs::begin(const std::vector<const void*>& memory) {
  if (empty()) oldest_ = 0;  // one run at a time needs the buffers of one slot
  Slot& slot = slots_[(oldest_ + pending_) % slots_.size()];
  slot.tensors.clear();
  slot.buffers.resize(memory.size());
  slot.begun = fetched_;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!fetched_[i]) continue;
    if (slot.buffers[i] == nullptr)
      slot.buffers[i] = queue_.output_buffer(graph_.outputs()[i].value->type().bytes());
    if (slot.buffers[i] != nullptr) {
      slot.buffers[i]->begin(memory[i]);
      continue;
    }
    const auto& [name, value] = graph_.outputs()[i];
    Tensor tensor(value->data_type(), value->type().static_shape());
    queue_.copy_to_host(tensor.raw(), memory[i], value->type().bytes());
    slot.tensors.emplace(name, std::move(tensor));
  }
  ++pending_;
}

std::map<std::string, Tensor> RunOutputs::finish() {
  Slot& slot = slots_[oldest_];
  oldest_ = (oldest_ + 1) % slots_.size();
  --pending_;
  std::map<std::string, Tensor> outputs = std::move(slot.tensors);
  for (size_t i = 0; i < slot.buffers.size(); ++i) {
    if (!slot.begun[i] || slot.buffers[i] == nullptr) continue;
    const auto& [name, value] = graph_.outputs()[i];
    const Shape shape = value->type().static_shape();
    std::shared_ptr<void> memory = slot.buffers[i]->finish();
    if (value->type().bytes() >= kHandedOn) {
      outputs.emplace(name, Tensor::share(value->data_type(), shape, std::move(memory)));
      continue;
    }
    Tensor tensor(value->data_type(), shape);
    if (tensor.bytes() > 0) std::memcpy(tensor.raw(), memory.get(), tensor.bytes());
    outputs.emplace(name, std::move(tensor));
  }
  return outputs;
}

}  // namespace tessera
