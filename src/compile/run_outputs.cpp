#include "compile/run_outputs.h"

#include <cstring>

namespace tessera {

void RunOutputs::begin(const std::vector<const void*>& memory) {
  if (empty()) oldest_ = 0;  // one run at a time needs the buffers of one slot
  Slot& slot = slots_[(oldest_ + pending_) % slots_.size()];
  slot.tensors.clear();
  if (slot.buffers.empty()) {
    for (const auto& output : graph_.outputs())
      slot.buffers.push_back(device_.output_buffer(output.value->type().bytes()));
  }
  bool waited = false;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (slot.buffers[i] != nullptr) {
      slot.buffers[i]->begin(memory[i]);
      continue;
    }
    if (!waited) device_.synchronize();
    waited = true;
    const auto& [name, value] = graph_.outputs()[i];
    Tensor tensor(value->data_type(), value->type().static_shape());
    device_.copy_to_host(tensor.raw(), memory[i], value->type().bytes());
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
    if (slot.buffers[i] == nullptr) continue;
    const auto& [name, value] = graph_.outputs()[i];
    Tensor tensor(value->data_type(), value->type().static_shape());
    const void* memory = slot.buffers[i]->finish();
    if (tensor.bytes() > 0) std::memcpy(tensor.raw(), memory, tensor.bytes());
    outputs.emplace(name, std::move(tensor));
  }
  return outputs;
}

}  // namespace tessera
