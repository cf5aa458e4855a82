#include "compile/run_inputs.h"

#include <cstdint>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/compile/kernel.h"

namespace tessera {
namespace {

bool is_aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % kMemoryAlignment == 0;
}

template <typename AnyTensor>
void check_type(const Value& input, const AnyTensor& tensor) {
  require(tensor.data_type() == input.data_type() && tensor.shape() == input.type().static_shape(),
          ErrorCode::invalid_argument, "input '{}' must be {}, got {}{}", input.name(),
          to_string(input.type()), to_string(tensor.data_type()), to_string(tensor.shape()));
}

}  // namespace

void RunInputs::stage(const std::map<std::string, Tensor>& tensors) {
  std::vector<Given> given;
  for (const auto& [name, tensor] : tensors) {
    const Value& input = find(name);
    check_type(input, tensor);
    given.push_back({&input, &tensor});
  }
  for (const Given& one : given) {
    load(one);
    Source& source = sources_[one.input->index()];
    source.staged = *one.tensor;
    source.staged_there.reset();
  }
}

void RunInputs::stage(const DeviceFeeds& tensors) {
  for (const auto& [name, tensor] : tensors) {
    check_there(find(name), tensor);
  }
  for (const auto& [name, tensor] : tensors) {
    Source& source = sources_[find(name).index()];
    if (tensor.ready() != nullptr) queue_.wait_for(*tensor.ready());
    moved_ = moved_ || source.memory != tensor.memory();
    source.memory = tensor.memory();
    source.staged.reset();
    source.staged_there = tensor;
  }
}

void RunInputs::check_there(const Value& input, const DeviceTensor& tensor) const {
  check_type(input, tensor);
  require(tensor.defined() && &tensor.device() == &device_, ErrorCode::invalid_argument,
          "input '{}' is not on the device of graph '{}'", input.name(), graph_.name());
}

const Value& RunInputs::find(const std::string& name) const {
  const Value* input = graph_.find_input(name);
  require(input != nullptr && input->role() == InputRole::input, ErrorCode::invalid_argument,
          "graph '{}' has no input '{}'", graph_.name(), name);
  return *input;
}

bool RunInputs::take(const std::map<std::string, Tensor>& tensors, const DeviceFeeds& there) {
  std::vector<Given> given;
  for (const auto& input : graph_.inputs()) {
    if (input->role() != InputRole::input) continue;
    if (const auto found = there.find(input->name()); found != there.end()) {
      check_there(*input, found->second);
      given.push_back({input.get(), nullptr, &found->second});
      continue;
    }
    const auto found = tensors.find(input->name());
    if (found == tensors.end()) {
      require(sources_[input->index()].is_staged(), ErrorCode::invalid_argument, "input '{}' ({}) is missing",
              input->name(), to_string(input->type()));
      continue;
    }
    check_type(*input, found->second);
    given.push_back({input.get(), &found->second});
  }
  for (const Given& one : given) {
    load(one);
    sources_[one.input->index()].staged.reset();
    sources_[one.input->index()].staged_there.reset();
  }
  for (Source& source : sources_) {
    if (source.loaded) source.buffer->show();
    source.loaded = false;
  }
  for (const Connection& connection : connections_)
    *connection.argument = memory(connection.input, connection.offset);
  return std::exchange(moved_, false);
}

void RunInputs::load(const Given& given) {
  Source& source = sources_[given.input->index()];
  const void* memory = nullptr;
  if (given.there != nullptr) {
    memory = copy_there(source, *given.there);
  } else if (device_.host_accessible() && is_aligned(given.tensor->raw())) {
    memory = given.tensor->raw();
  } else {
    memory = copy_to_device(source, *given.tensor);
  }
  moved_ = moved_ || source.memory != memory;
  source.memory = memory;
}

// Into memory that stays the same from run to run, so that recorded runs find it. What is given is the copy's
// until the run after the next one is given, which finds it long done: whoever gets that memory next need not
// wait.
const void* RunInputs::copy_there(Source& source, const DeviceTensor& tensor) {
  if (tensor.ready() != nullptr) queue_.wait_for(*tensor.ready());
  Copied& copied = source.copied[source.copies++ % source.copied.size()];
  if (copied.done != nullptr) copied.done->wait();
  copied = {.tensor = tensor, .done = nullptr};
  if (device_.host_accessible()) return tensor.memory();
  if (source.copy_of_there == nullptr) source.copy_of_there = device_.allocate(tensor.bytes());
  queue_.copy(source.copy_of_there.get(), tensor.memory(), tensor.bytes());
  copied.done = queue_.mark();
  return source.copy_of_there.get();
}

// Into memory that stays the same from run to run, so that recorded runs find it.
const void* RunInputs::copy_to_device(Source& source, const Tensor& tensor) {
  const auto bytes = static_cast<int64_t>(tensor.bytes());
  if (source.buffer == nullptr && source.copy == nullptr) {
    source.buffer = queue_.input_buffer(bytes);
    if (source.buffer == nullptr) source.copy = device_.allocate(bytes);
  }
  if (source.buffer == nullptr) {
    queue_.copy_from_host(source.copy.get(), tensor.raw(), bytes);
    return source.copy.get();
  }
  source.buffer->load(tensor.owner());
  source.loaded = true;
  return source.buffer->memory();
}

}  // namespace tessera
