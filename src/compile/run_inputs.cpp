#include "compile/run_inputs.h"

#include <cstdint>

#include "tessera/base/error.h"
#include "tessera/compile/kernel.h"

namespace tessera {
namespace {

bool is_aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % kMemoryAlignment == 0;
}

void check_type(const Value& input, const Tensor& tensor) {
  require(tensor.data_type() == input.data_type() && tensor.shape() == input.type().static_shape(),
          ErrorCode::invalid_argument, "input '{}' must be {}, got {}{}", input.name(),
          to_string(input.type()), to_string(tensor.data_type()), to_string(tensor.shape()));
}

}  // namespace

void RunInputs::stage(const std::map<std::string, Tensor>& tensors) {
  std::vector<Given> given;
  for (const auto& [name, tensor] : tensors) {
    const Value* input = graph_.find_input(name);
    require(input != nullptr && input->role() == InputRole::input, ErrorCode::invalid_argument,
            "graph '{}' has no input '{}'", graph_.name(), name);
    check_type(*input, tensor);
    given.push_back({input, &tensor});
  }
  for (const Given& one : given) {
    load(one);
    sources_[one.input->index()].staged = *one.tensor;
  }
}

void RunInputs::take(const std::map<std::string, Tensor>& tensors) {
  std::vector<Given> given;
  for (const auto& input : graph_.inputs()) {
    if (input->role() != InputRole::input) continue;
    const auto found = tensors.find(input->name());
    if (found == tensors.end()) {
      require(sources_[input->index()].staged.has_value(), ErrorCode::invalid_argument,
              "input '{}' ({}) is missing", input->name(), to_string(input->type()));
      continue;
    }
    check_type(*input, found->second);
    given.push_back({input.get(), &found->second});
  }
  for (const Given& one : given) {
    load(one);
    sources_[one.input->index()].staged.reset();
  }
  for (Source& source : sources_) {
    if (source.loaded) source.buffer->show();
    source.loaded = false;
  }
  for (const Connection& connection : connections_) *connection.argument = memory(connection.input);
}

void RunInputs::load(const Given& given) {
  Source& source = sources_[given.input->index()];
  const void* memory = given.tensor->raw();
  const bool readable = device_.host_accessible() && is_aligned(memory);
  source.memory = readable ? memory : copy_to_device(source, memory, given.input->type().bytes());
}

// Into memory that stays the same from run to run, so that recorded runs find it.
const void* RunInputs::copy_to_device(Source& source, const void* memory, int64_t bytes) {
  if (source.buffer == nullptr && source.copy == nullptr) {
    source.buffer = device_.input_buffer(bytes);
    if (source.buffer == nullptr) source.copy = device_.allocate(bytes);
  }
  if (source.buffer == nullptr) {
    device_.copy_from_host(source.copy.get(), memory, bytes);
    return source.copy.get();
  }
  source.buffer->load(memory);
  source.loaded = true;
  return source.buffer->memory();
}

}  // namespace tessera
