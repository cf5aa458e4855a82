#include "recipe/stage_data.h"

#include "tessera/base/error.h"
#include "tessera/recipe/run.h"

#include "recipe/run_ranks.h"

namespace tessera::recipe {
namespace {

// What a number of samples is asked of, before it is known which batch they make.
std::shared_ptr<const data::Source> samples_of(const Recipe& recipe) {
  Recipe one = recipe;
  one.values.set("train.batch", int64_t{1});
  std::shared_ptr<const data::Source> samples = make_workload(one).training();
  require(samples->batches(0).has_value() && samples->in_batches_of(1) != nullptr,
          ErrorCode::invalid_argument,
          "train.fit_batch: no batch fits this training data, whose epochs are not so many samples in "
          "batches of one "
          "size: it is one long text, has rows of several lengths, or does not end");
  return samples;
}

}  // namespace

StageData open_stage(const Recipe& recipe, Communicator* communicator, std::optional<int64_t> kept) {
  if (!recipe.values.boolean("train.fit_batch")) {
    StageData stage{.recipe = recipe_of_rank(recipe, communicator)};
    stage.workload = make_workload(stage.recipe);
    stage.training = stage.workload.training();
    return stage;
  }
  const std::shared_ptr<const data::Source> samples = samples_of(recipe);
  const int64_t count = samples->batches(0).value();
  const int64_t accumulate = recipe.values.integer("train.accumulate");
  const int64_t ranks = communicator == nullptr ? 1 : communicator->size();
  StageData stage{.fitted = kept.has_value()
                                ? epoch_of(count, *kept, accumulate)
                                : fit_batch(count, recipe.values.integer("train.batch"), accumulate, ranks)};
  Recipe fitted = recipe;
  fitted.values.set("train.batch", stage.fitted->batch);
  stage.recipe = recipe_of_rank(fitted, communicator);
  stage.workload = make_workload(stage.recipe);
  stage.training = samples->in_batches_of(stage.recipe.values.integer("train.batch"));
  return stage;
}

}  // namespace tessera::recipe
