#include "tessera/train/checkpoint.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

void save(const Checkpoint& checkpoint, const std::filesystem::path& path) {
  data::write_safetensors(path, checkpoint.tensors, checkpoint.metadata);
}

void save(const CheckpointSource& checkpoint, const std::filesystem::path& path) {
  data::stream_safetensors(path, checkpoint.tensors, checkpoint.metadata);
}

Checkpoint read(const CheckpointSource& source) {
  Checkpoint result{{}, source.metadata};
  for (const auto& [name, tensor] : source.tensors) result.tensors.emplace(name, tensor.contents());
  return result;
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  const data::SafetensorsFile file = data::SafetensorsFile::open(path);
  return {file.read_all(), file.metadata()};
}

namespace train {
namespace {

constexpr std::string_view kAverage = "ema/";

bool is_counter(const std::string& name) {
  return name.ends_with(".num_batches_tracked");
}

}  // namespace

data::SafetensorsSource source_of(const Variables& variables, const nn::Variable& variable,
                                  const std::string& name) {
  const Shape& shape = variable.permutation.empty() ? variables.shape(name) : variable.file_shape;
  return {variables.data_type(name), shape, [&variables, &variable, name] {
            Tensor value = variables.get(name);
            return variable.permutation.empty() ? value : nn::to_file_layout(variable, value);
          }};
}

void write_variables(Variables& variables, const std::vector<nn::Variable>& list,
                     const std::map<std::string, Tensor>& tensors, const std::string& source,
                     bool allow_extra) {
  std::vector<std::string> stored;
  for (const auto& [name, tensor] : tensors) stored.push_back(name);
  std::map<std::string, Tensor> values;  // all are checked before the first is set
  for (const nn::Variable& variable : list) {
    const auto found = tensors.find(variable.name);
    if (found == tensors.end()) {
      fail(ErrorCode::invalid_file, "{}: the tensor '{}' is missing{}", source, variable.name,
           did_you_mean(variable.name, stored));
    }
    try {
      values.emplace(variable.name, nn::from_file_layout(variable, found->second));
    } catch (const Error& error) {
      fail(error.code(), "{}: {}", source, error.what());
    }
  }
  for (const std::string& name : stored) {
    require(allow_extra || values.contains(name) || is_counter(name), ErrorCode::invalid_file,
            "{}: the tensor '{}' belongs to no variable of the network", source, name);
  }
  for (const auto& [name, value] : values) variables.set(name, value);
}

Tensor starting_value(const nn::Variable& variable, uint64_t seed) {
  if (variable.name == "random_counter") return Tensor::from<int64_t>({2}, {static_cast<int64_t>(seed), 0});
  const bool averaged = variable.name.starts_with(kAverage);
  const std::string source = averaged ? variable.name.substr(kAverage.size()) : variable.name;
  return nn::initialize(variable.initializer, source, variable.shape, seed, variable.data_type);
}

void initialize_variables(Variables& variables, const std::vector<nn::Variable>& list, uint64_t seed) {
  for (const nn::Variable& variable : list) variables.set(variable.name, starting_value(variable, seed));
}

}  // namespace train
}  // namespace tessera
