#include "tessera/models/bert_files.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/safetensors.h"

namespace tessera::models {
namespace {

constexpr std::string_view kEncoder = "bert.";
constexpr std::string_view kHeads = "cls.";
constexpr std::string_view kPositionNumbers = "bert.embeddings.position_ids";

// A tensor of older files that holds the same as another one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kCopies = {
    {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
     {"cls.predictions.decoder.bias", "cls.predictions.bias"}}};

std::optional<std::string> original_of(std::string_view name) {
  for (const auto& [copy, original] : kCopies)
    if (name == copy) return std::string(original);
  return std::nullopt;
}

void replace_end(std::string& name, std::string_view end, std::string_view by) {
  if (name.ends_with(end)) name.replace(name.size() - end.size(), end.size(), by);
}

// What we call a tensor of a file.
std::string own_name(const std::string& stored) {
  std::string name = stored;
  if (!name.starts_with(kEncoder) && !name.starts_with(kHeads)) name.insert(0, kEncoder);
  replace_end(name, "LayerNorm.gamma", "LayerNorm.weight");
  replace_end(name, "LayerNorm.beta", "LayerNorm.bias");
  return name;
}

std::string stored_name(const std::string& own, BertForm form) {
  return form == BertForm::encoder ? own.substr(kEncoder.size()) : own;
}

}  // namespace

std::map<std::string, Tensor> load_bert(const std::filesystem::path& path, const BertConfig& config,
                                        BertForm form) {
  const data::SafetensorsFile file = data::SafetensorsFile::open(path);
  std::map<std::string, std::string> stored;  // our name -> that of the file
  for (const auto& [name, entry] : file.entries()) {
    const auto [place, is_new] = stored.emplace(own_name(name), name);
    require(is_new, ErrorCode::invalid_file, "{}: '{}' and '{}' are one tensor", path.string(), place->second,
            name);
  }
  stored.erase(std::string(kPositionNumbers));
  std::map<std::string, Tensor> weights;
  for (const nn::Variable& variable : bert_variables(config, form)) {
    const auto found = stored.find(variable.name);
    require(found != stored.end(), ErrorCode::invalid_file, "{}: '{}' is missing", path.string(),
            stored_name(variable.name, form));
    const Shape& shape = file.entries().at(found->second).shape;
    require(shape == variable.shape, ErrorCode::invalid_file, "{}: '{}' has the shape {}, expected {}",
            path.string(), found->second, to_string(shape), to_string(variable.shape));
    weights.emplace(variable.name, nn::from_file_layout(variable, file.read(found->second)));
    stored.erase(found);
  }
  for (const auto& [name, in_file] : stored) {
    const auto original = original_of(name);
    require(original && weights.contains(*original), ErrorCode::invalid_file,
            "{}: '{}' is no tensor of such a network", path.string(), in_file);
    require(file.read(in_file).cast(DataType::fp32).identical(weights.at(*original)), ErrorCode::invalid_file,
            "{}: '{}' is not equal to '{}', which this network has in its place", path.string(), in_file,
            *original);
  }
  return weights;
}

void save_bert(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
               const BertConfig& config, BertForm form) {
  std::map<std::string, Tensor> tensors;
  for (const nn::Variable& variable : bert_variables(config, form)) {
    const auto found = weights.find(variable.name);
    require(found != weights.end(), ErrorCode::invalid_argument, "weight '{}' is missing", variable.name);
    require(found->second.shape() == variable.shape, ErrorCode::invalid_argument,
            "weight '{}' has the shape {}, expected {}", variable.name, to_string(found->second.shape()),
            to_string(variable.shape));
    tensors.emplace(stored_name(variable.name, form), nn::to_file_layout(variable, found->second));
  }
  data::write_safetensors(path, tensors, {{"format", "pt"}});
}

}  // namespace tessera::models
