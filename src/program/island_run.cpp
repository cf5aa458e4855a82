#include "program/island_run.h"

#include <algorithm>

namespace tessera::program {
namespace {

// Of an output that the next run of the island reads while it makes another.
constexpr size_t kMostKept = 2;

// The same memory, which somebody else keeps.
DeviceTensor borrowed(std::shared_ptr<Device> device, const DeviceTensor& tensor) {
  const std::shared_ptr<void> nobodys(std::shared_ptr<void>(), tensor.memory());
  return DeviceTensor::wrap(std::move(device), tensor.data_type(), tensor.shape(), nobodys);
}

}  // namespace

IslandRun::IslandRun(std::unique_ptr<Executable> executable, std::shared_ptr<Device> device)
    : device_(std::move(device)), executable_(std::move(executable)) {
  if (device_->host_accessible()) return;
  for (const Graph::Output& output : executable_->graph().outputs())
    executable_->fetch(output.name, Executable::Fetch::device);
}

std::map<std::string, Item> IslandRun::run(const std::map<std::string, const Item*>& inputs, uint64_t run) {
  if (device_->host_accessible()) return run_in_host_memory(inputs);
  for (const auto& [name, item] : inputs) take(name, *item, run);
  executable_->run({});
  std::map<std::string, Item> outputs;
  for (const Graph::Output& output : executable_->graph().outputs())
    outputs.emplace(output.name, keep(output.name));
  // Nothing that is given on is under way: whoever reads it has a queue of its own, and may outlive this one.
  executable_->queue().synchronize();
  return outputs;
}

std::map<std::string, Item> IslandRun::run_in_host_memory(const std::map<std::string, const Item*>& inputs) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, item] : inputs) tensors.emplace(name, *item->tensor());
  std::map<std::string, Item> outputs;
  for (auto& [name, tensor] : executable_->run(tensors)) outputs.emplace(name, std::move(tensor));
  return outputs;
}

void IslandRun::take(const std::string& name, const Item& item, uint64_t run) {
  Place& place = places_[name];
  const DeviceTensor* there = item.device_tensor();
  if (there != nullptr && &there->device() == device_.get()) {
    place.given = {};
    return take_there(place, name, *there);
  }
  const Tensor& tensor = *item.tensor();
  const bool is_there = place.run == run && place.given.raw() == tensor.raw() &&
                        place.given.shape() == tensor.shape() && tensor.bytes() > 0;
  if (is_there) return;
  executable_->stage({{name, tensor}});
  place.given = tensor;
  place.run = run;
  place.memory = nullptr;
}

// Recorded runs are recorded anew where an input lies elsewhere: of those that wander, such as what the
// iterations of a loop hand on, a copy does not.
void IslandRun::take_there(Place& place, const std::string& name, const DeviceTensor& tensor) {
  const bool wanders = place.memory != nullptr && place.memory != tensor.memory();
  if (wanders && !place.own.defined())
    place.own = DeviceTensor::allocate(device_, tensor.data_type(), tensor.shape());
  place.memory = tensor.memory();
  if (place.own.defined()) {
    executable_->queue().copy(place.own.memory(), tensor.memory(), tensor.bytes());
    executable_->stage(DeviceFeeds{{name, place.own}});
  } else {
    executable_->stage(DeviceFeeds{{name, borrowed(device_, tensor)}});
  }
}

// Out of the arena, which is used again.
Item IslandRun::keep(const std::string& name) {
  const DeviceTensor made = executable_->output(name);
  if (made.bytes() == 0) return Tensor(made.data_type(), made.shape());
  DeviceTensor kept = memory_for(name, made);
  executable_->queue().copy(kept.memory(), made.memory(), made.bytes());
  return kept;
}

DeviceTensor IslandRun::memory_for(const std::string& name, const DeviceTensor& like) {
  std::vector<DeviceTensor>& all = kept_[name];
  const auto free = std::find_if(all.begin(), all.end(),
                                 [](const DeviceTensor& one) { return one.owner().use_count() == 1; });
  if (free != all.end()) return *free;
  DeviceTensor made = DeviceTensor::allocate(device_, like.data_type(), like.shape());
  if (all.size() < kMostKept) all.push_back(made);
  return made;
}

}  // namespace tessera::program
