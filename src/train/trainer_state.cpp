// What a trainer leaves and starts from: weights, and its whole state.
#include <algorithm>
#include <charconv>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/train/trainer.h"

namespace tessera::train {
namespace {

constexpr const char* kFormat = "tessera training state";
constexpr const char* kVersion = "1";

int64_t read_integer(const Checkpoint& state, const std::string& key, const std::string& source) {
  const auto found = state.metadata.find(key);
  require(found != state.metadata.end(), ErrorCode::invalid_file, "{}: '{}' is missing: no training state",
          source, key);
  int64_t value = -1;
  const char* end = found->second.data() + found->second.size();
  const auto [rest, error] = std::from_chars(found->second.data(), end, value);
  require(error == std::errc() && rest == end && value >= 0, ErrorCode::invalid_file,
          "{}: '{}' is '{}', no count", source, key, found->second);
  return value;
}

}  // namespace

Checkpoint Trainer::checkpoint() const {
  Checkpoint result;
  for (const nn::Variable& variable : network_list_) {
    const bool averaged = options_.ema_decay > 0 && variable.role == InputRole::parameter;
    const std::string source = averaged ? "ema/" + variable.name : variable.name;
    result.tensors.emplace(variable.name, nn::to_file_layout(variable, variables_->get(source)));
  }
  result.metadata["model"] = model_.name;
  return result;
}

void Trainer::load_weights(const std::filesystem::path& path) {
  write_variables(*variables_, network_list_, load_checkpoint(path).tensors, path.string());
  for (const nn::Variable& variable : network_list_) {
    if (options_.ema_decay > 0 && variable.role == InputRole::parameter) {
      variables_->set("ema/" + variable.name, variables_->get(variable.name));
    }
  }
}

Checkpoint Trainer::training_state() const {
  return {read_variables(*variables_, variables_list_),
          {{"format", kFormat},
           {"version", kVersion},
           {"model", model_.name},
           {"optimizer", options_.optimizer.name},
           {"precision", std::string(to_string(precision_))},
           {"epoch", std::to_string(position_.epoch)},
           {"batch", std::to_string(position_.batch)},
           {"step", std::to_string(position_.step)},
           {"best_accuracy", fmt::format("{}", best_accuracy_)},
           {"history", to_json(history_)}}};
}

// What belongs to a precision alone begins anew, or is left out, where the state is of another one.
std::map<std::string, Tensor> Trainer::tensors_for_precision(const Checkpoint& state) const {
  std::map<std::string, Tensor> tensors = state.tensors;
  const auto precision = state.metadata.find("precision");
  if (precision == state.metadata.end() || precision->second == to_string(precision_)) return tensors;
  for (const char* name : {kLossScaleState, kLossScaleStepsState}) {
    const auto own = std::find_if(variables_list_.begin(), variables_list_.end(),
                                  [&](const nn::Variable& variable) { return variable.name == name; });
    tensors.erase(name);
    if (own != variables_list_.end()) tensors.emplace(name, starting_value(*own, options_.seed));
  }
  return tensors;
}

void Trainer::restore(const Checkpoint& state, const std::string& source) {
  const auto expect = [&](const char* key, const std::string& value) {
    const auto found = state.metadata.find(key);
    require(found != state.metadata.end() && found->second == value, ErrorCode::invalid_file,
            "{}: {} is '{}', this run has '{}'", source, key,
            found == state.metadata.end() ? "missing" : found->second, value);
  };
  expect("format", kFormat);
  expect("version", kVersion);
  expect("model", model_.name);
  expect("optimizer", options_.optimizer.name);
  const Position position{.epoch = read_integer(state, "epoch", source),
                          .batch = read_integer(state, "batch", source),
                          .step = read_integer(state, "step", source)};
  RunHistory history;
  if (const auto found = state.metadata.find("history"); found != state.metadata.end()) {
    history = history_from_json(found->second, source);
  }
  write_variables(*variables_, variables_list_, tensors_for_precision(state), source);
  position_ = position;
  history_ = std::move(history);
  if (const auto found = state.metadata.find("best_accuracy"); found != state.metadata.end()) {
    const std::string& text = found->second;  // not by strtod, which reads what the locale says
    std::from_chars(text.data(), text.data() + text.size(), best_accuracy_);
  }
}

}  // namespace tessera::train
