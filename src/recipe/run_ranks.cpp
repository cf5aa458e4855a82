#include "recipe/run_ranks.h"

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/distribute/exchange.h"
#include "tessera/distribute/program_identity.h"

namespace tessera::recipe {
namespace {

uint64_t hash_of(const Tensor& tensor) {
  return hash_name(static_cast<const char*>(tensor.raw()), tensor.bytes());
}

// One line for each thing that may differ.
std::string description_of(const data::Source& source) {
  std::string text;
  for (const Field& field : source.fields())
    text += fmt::format("{} {}\n", field.name, to_string(field.type));
  text += fmt::format("{} batches\n", source.batches(0).value_or(-1));
  const std::optional<data::Batch> batch = source.open({})->next();
  if (!batch.has_value()) return text;
  for (const auto& [name, tensor] : batch->fields) {
    text += fmt::format("a first batch of {} {} with the hash {:016x}\n", name, to_string(tensor.shape()),
                        hash_of(tensor));
  }
  return text;
}

}  // namespace

Recipe with_device_of_rank(const Recipe& recipe, Communicator* communicator) {
  Recipe own = recipe;
  if (communicator == nullptr) return own;
  const std::string& device = recipe.values.text("train.device");
  const int64_t place = distribute::place_on_machine(*communicator);
  if (device == "cuda" || device == "auto")
    own.values.set("train.device", fmt::format("{}:rank={}", device, place));
  return own;
}

Recipe recipe_of_rank(const Recipe& recipe, Communicator* communicator) {
  Recipe own = with_device_of_rank(recipe, communicator);
  if (communicator == nullptr) return own;
  const int64_t batch = recipe.values.integer("train.batch");
  if (batch % communicator->size() != 0) {
    distribute::fail_together(
        *communicator, ErrorCode::invalid_argument,
        fmt::format("{} ranks cannot share a batch of {} evenly: choose train.batch as a multiple of {}",
                    communicator->size(), batch, communicator->size()));
  }
  own.values.set("train.batch", batch / communicator->size());
  return own;
}

void require_same_run(Communicator* communicator, const Recipe& recipe) {
  if (communicator == nullptr) return;
  distribute::require_same(*communicator, "program", distribute::program_identity());
  distribute::require_same(*communicator, "recipe", to_toml(recipe));
}

void require_same_data(Communicator* communicator, const data::Source& source) {
  if (communicator != nullptr) distribute::require_same(*communicator, "data set", description_of(source));
}

void require_same_state(Communicator* communicator, const train::Trainer& trainer) {
  if (communicator == nullptr) return;
  const Checkpoint state = trainer.training_state();
  std::string text;
  for (const char* key : {"epoch", "batch", "step"})
    text += fmt::format("{} {}\n", key, state.metadata.at(key));
  for (const auto& [name, tensor] : state.tensors) {
    // What one rank had accumulated within a step is nobody else's.
    if (train::is_accumulated(name)) continue;
    text += fmt::format("{} with the hash {:016x}\n", name, hash_of(tensor));
  }
  distribute::require_same(*communicator, "state", text);
}

}  // namespace tessera::recipe
