// What a trainer leaves and starts from: weights, and its whole state.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/train/trainer.h"

namespace tessera::train {
namespace {

constexpr const char* kFormat = "tessera training state";
constexpr const char* kVersion = "1";
// What names of states that passes added to the steps begin with: the builder of these knows none of them.
const std::string kAdded = "added/";

int64_t read_integer(const Checkpoint& state, const std::string& key, const std::string& source) {
  const auto found = state.metadata.find(key);
  require(found != state.metadata.end(), ErrorCode::invalid_file, "{}: '{}' is missing: no training state",
          source, key);
  const std::optional<int64_t> value = parse_integer(found->second);
  require(value.has_value() && *value >= 0, ErrorCode::invalid_file, "{}: '{}' is '{}', no count", source,
          key, found->second);
  return *value;
}

// Of a run before there were stages, or in its first: where everything began.
Stage stage_of(const Checkpoint& state, const std::string& source) {
  if (!state.metadata.contains("stage")) return {};
  return {.index = read_integer(state, "stage", source),
          .epoch = read_integer(state, "stage_epoch", source),
          .step = read_integer(state, "stage_step", source)};
}

// The best value so far, which was called after its only metric once. -1 was none.
std::optional<double> best_of(const Checkpoint& state) {
  for (const char* key : {"best", "best_accuracy"}) {
    const auto found = state.metadata.find(key);
    if (found == state.metadata.end()) continue;
    const std::optional<double> value = parse_real(found->second);
    if (value.has_value() && (key == std::string_view("best") || *value >= 0)) return value;
  }
  return std::nullopt;
}

// States that accumulation has had since its sums are divided by their weight. They are empty between two
// updates.
void add_missing_weights(const std::vector<nn::Variable>& list, std::map<std::string, Tensor>& tensors) {
  for (const nn::Variable& variable : list) {
    if (variable.name.ends_with(kAccumulatedWeightState))
      tensors.emplace(variable.name, Tensor(DataType::fp32, {}));
  }
}

// A run that is to delay its gradients from now on has none of a step before, and one that is not wants none.
void fit_delay(const std::vector<nn::Variable>& list, std::map<std::string, Tensor>& tensors) {
  const auto is_of_delay = [](const std::string& name) {
    return is_delayed(name) || name.ends_with(kDelayedStepsState);
  };
  std::map<std::string, Tensor> wanted;
  for (const nn::Variable& variable : list) {
    if (is_of_delay(variable.name)) wanted.emplace(variable.name, Tensor(variable.data_type, variable.shape));
  }
  std::erase_if(tensors,
                [&](const auto& one) { return is_of_delay(one.first) && !wanted.contains(one.first); });
  tensors.merge(wanted);
}

// Of a state that ranks share out: the whole, from all of them.
data::SafetensorsSource gathered_source(const Variables& variables, const nn::Variable& variable,
                                        Communicator& communicator) {
  return {variable.data_type, variable.shard->whole, [&variables, &variable, &communicator] {
            const Tensor part = variables.get(variable.name);
            Tensor parts(part.data_type(), {communicator.size() * part.size()});
            communicator.all_gather(part.raw(), parts.raw(), static_cast<int64_t>(part.bytes()));
            return nn::whole_of(*variable.shard, parts);
          }};
}

// Of sums of which each rank has its own: their sum over the ranks, in the order of these. Each keeps a part
// of it, exchanged here: what writes the parts to a file may fail on one rank alone.
struct Summed {
  data::SafetensorsSource whole;
  CheckpointPart part;
};

Summed summed(const Variables& variables, const nn::Variable& variable, Communicator& communicator) {
  const nn::Shard shard{variable.shape, communicator.rank(), communicator.size()};
  const Tensor own = variables.get(variable.name);
  Tensor padded(own.data_type(), {shard.ranks * shard.size()});
  std::memcpy(padded.raw(), own.raw(), own.bytes());
  const auto part = std::make_shared<Tensor>(own.data_type(), Shape{shard.size()});
  communicator.reduce_scatter(padded.raw(), part->raw(), shard.size(), own.data_type(), Reduction::sum);
  return {.whole = {variable.data_type, variable.shape,
                    [part, shard, &communicator] {
                      Tensor parts(part->data_type(), {shard.ranks * shard.size()});
                      communicator.all_gather(part->raw(), parts.raw(), static_cast<int64_t>(part->bytes()));
                      return nn::whole_of(shard, parts);
                    }},
          .part = {shard.first(), [part, shard] {
                     return Tensor::share(part->data_type(), {shard.count()}, part->owner());
                   }}};
}

// Takes the states that passes added out of the tensors of a file.
std::map<std::string, Tensor> take_added(std::map<std::string, Tensor>& tensors) {
  std::map<std::string, Tensor> added;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(kAdded)) added.emplace(name.substr(kAdded.size()), tensor);
  }
  std::erase_if(tensors, [](const auto& one) { return one.first.starts_with(kAdded); });
  return added;
}

CheckpointPart own_part(const Variables& variables, const nn::Variable& variable) {
  return {variable.shard->first(), [&variables, &variable] {
            const Tensor part = variables.get(variable.name);
            // Without what fills it up.
            return Tensor::share(part.data_type(), {variable.shard->count()}, part.owner());
          }};
}

}  // namespace

CheckpointSource Trainer::checkpoint_source() const {
  CheckpointSource result;
  const auto averaged = is_averaged();
  for (const nn::Variable& variable : network_list_) {
    const std::string name = averaged(variable) ? "ema/" + variable.name : variable.name;
    result.tensors.emplace(variable.name, source_of(*variables_, variable, name));
  }
  // The tensors are laid out as PyTorch's, which transformers asks for by this word.
  result.metadata = {{"format", "pt"}, {"model", task_.network}};
  return result;
}

void Trainer::load_weights(const std::filesystem::path& path) {
  take_weights(load_checkpoint(path).tensors, path.string());
}

void Trainer::load_weights(std::map<std::string, Tensor> tensors, const std::string& source) {
  tensors.merge(checkpoint().tensors);
  take_weights(tensors, source);
}

void Trainer::take_weights(const std::map<std::string, Tensor>& tensors, const std::string& source) {
  write_variables(*variables_, network_list_, tensors, source);
  const auto averaged = is_averaged();
  for (const nn::Variable& variable : network_list_) {
    if (averaged(variable)) {
      variables_->set("ema/" + variable.name, variables_->get(variable.name).cast(DataType::fp32));
    }
  }
  bind_again();
  begun_ = true;
}

// What is made of constants once was made of others.
void Trainer::bind_again() {
  for (auto& [key, steps] : steps_) steps.family.bind(variables_);
}

// "adam", or those of all groups in their order.
std::string Trainer::optimizer_names() const {
  std::vector<std::string> names;
  for (size_t index = 0; index < phase_count(); ++index) {
    for (const ParameterGroup& group : phase(index).groups) names.push_back(group.optimizer.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

CheckpointSource Trainer::training_state_source() const {
  CheckpointSource state{{},
                         {{"format", kFormat},
                          {"version", kVersion},
                          {"model", task_.network},
                          {"optimizer", optimizer_names()},
                          {"precision", std::string(to_string(precision_))},
                          {"epoch", std::to_string(position_.epoch)},
                          {"batch", std::to_string(position_.batch)},
                          {"step", std::to_string(position_.step)},
                          {"history", to_json(history_)}}};
  for (const nn::Variable& variable : variables_list_) {
    if (ranks() > 1 && is_delayed(variable.name)) {
      Summed sums = summed(*variables_, variable, *communicator());
      state.tensors.emplace(variable.name, std::move(sums.whole));
      state.parts.emplace(variable.name, std::move(sums.part));
    } else if (variable.shard.has_value()) {
      state.tensors.emplace(variable.name, gathered_source(*variables_, variable, *communicator()));
      state.parts.emplace(variable.name, own_part(*variables_, variable));
    } else {
      state.tensors.emplace(variable.name, source_of(*variables_, variable, variable.name));
    }
  }
  for (const std::string& name : added_states_) {
    state.tensors.emplace(kAdded + name,
                          data::SafetensorsSource{variables_->data_type(name), variables_->shape(name),
                                                  [this, name] { return variables_->get(name); }});
  }
  if (!position_.source.empty()) state.metadata["source"] = position_.source;
  if (position_.stage.index > 0) {
    state.metadata["stage"] = std::to_string(position_.stage.index);
    state.metadata["stage_epoch"] = std::to_string(position_.stage.epoch);
    state.metadata["stage_step"] = std::to_string(position_.stage.step);
  }
  if (best_.has_value()) state.metadata["best"] = fmt::format("{}", *best_);
  return state;
}

// What belongs to a precision alone begins anew, or is left out, where the state is of another one.
std::map<std::string, Tensor> Trainer::tensors_of(const Checkpoint& state,
                                                  std::map<std::string, Tensor> tensors,
                                                  const Position& position) const {
  fit_delay(variables_list_, tensors);
  if (position.batch % options_.accumulate == 0) add_missing_weights(variables_list_, tensors);
  const auto precision = state.metadata.find("precision");
  if (precision == state.metadata.end() || precision->second == to_string(precision_)) return tensors;
  const auto is_of_loss_scale = [](const std::string& name) {
    return name.ends_with(kLossScaleState) || name.ends_with(kLossScaleStepsState);
  };
  std::erase_if(tensors, [&](const auto& tensor) { return is_of_loss_scale(tensor.first); });
  for (const nn::Variable& variable : variables_list_) {
    if (is_of_loss_scale(variable.name))
      tensors.emplace(variable.name, starting_value(variable, options_.seed));
  }
  return tensors;
}

// What one rank had accumulated within a step, and what all had delayed to the next one, counts once.
void Trainer::clear_sums() {
  for (const nn::Variable& variable : variables_list_) {
    if (is_accumulated(variable.name) || is_delayed(variable.name))
      variables_->set(variable.name, Tensor(variable.data_type, variable.shape));
  }
}

// Those that are missing begin anew when the steps are next bound, which also says what does not fit them.
void Trainer::restore_added_states(const std::map<std::string, Tensor>& states) {
  for (const std::string& name : std::exchange(added_states_, {})) variables_->erase(name);
  for (const auto& [name, tensor] : states) {
    variables_->set(name, tensor);
    added_states_.insert(name);
  }
}

void Trainer::restore(const Checkpoint& state, const std::string& source) {
  restore(state, source, state.tensors);
}

// How many rows a batch of that training had nobody says here.
void Trainer::restore_to_read(const Checkpoint& state, const std::string& source) {
  std::map<std::string, Tensor> tensors = state.tensors;
  for (const nn::Variable& variable : variables_list_) {
    if (variable.of_rows) tensors.insert_or_assign(variable.name, starting_value(variable, options_.seed));
  }
  restore(state, source, std::move(tensors));
}

// What depends on the data, or on which batches make a step, starts as in a new training.
void Trainer::begin_stage(const Checkpoint& state, const std::string& source, Carried carried) {
  std::map<std::string, Tensor> tensors = state.tensors;
  for (const nn::Variable& variable : variables_list_) {
    const bool is_count = variable.name.ends_with(kOptimizerStepState);
    if (variable.advances || is_accumulated(variable.name) || (is_count && carried == Carried::moments))
      tensors.insert_or_assign(variable.name, starting_value(variable, options_.seed));
  }
  std::erase_if(tensors, [&](const auto& one) {
    const bool is_wanted = std::any_of(variables_list_.begin(), variables_list_.end(),
                                       [&](const auto& known) { return known.name == one.first; });
    return is_accumulated(one.first) && !is_wanted;
  });
  restore(state, source, std::move(tensors));
  position_ = {.epoch = position_.epoch + (position_.batch > 0 ? 1 : 0),
               .step = position_.step,
               .stage = {.index = position_.stage.index + 1}};
  position_.stage.epoch = position_.epoch;
  position_.stage.step = position_.step;
  best_.reset();
}

void Trainer::restore(const Checkpoint& state, const std::string& source,
                      std::map<std::string, Tensor> tensors) {
  const auto expect = [&](const char* key, const std::string& value) {
    const auto found = state.metadata.find(key);
    require(found != state.metadata.end() && found->second == value, ErrorCode::invalid_file,
            "{}: {} is '{}', this run has '{}'", source, key,
            found == state.metadata.end() ? "missing" : found->second, value);
  };
  expect("format", kFormat);
  expect("version", kVersion);
  expect("model", task_.network);
  expect("optimizer", optimizer_names());
  Position position{.epoch = read_integer(state, "epoch", source),
                    .batch = read_integer(state, "batch", source),
                    .step = read_integer(state, "step", source),
                    .stage = stage_of(state, source)};
  if (const auto found = state.metadata.find("source"); found != state.metadata.end())
    position.source = found->second;
  RunHistory history;
  if (const auto found = state.metadata.find("history"); found != state.metadata.end()) {
    history = history_from_json(found->second, source);
  }
  tensors = tensors_of(state, std::move(tensors), position);
  const std::map<std::string, Tensor> added = take_added(tensors);
  write_variables(*variables_, variables_list_, tensors, source);
  restore_added_states(added);
  if (rank() > 0) clear_sums();
  bind_again();
  position_ = std::move(position);
  history_ = std::move(history);
  best_ = best_of(state);
  begun_ = true;
}

}  // namespace tessera::train
