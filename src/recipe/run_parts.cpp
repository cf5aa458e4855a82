// From a recipe's words to the objects of the library.
#include "tessera/base/error.h"
#include "tessera/optim/registry.h"
#include "tessera/recipe/run.h"
#include "tessera/train/task_registry.h"

namespace tessera::recipe {
namespace {

train::TrainerOptions without_device(const Recipe& recipe) {
  const Options& values = recipe.values;
  const optim::OptimizerDescription& optimizer = optim::optimizers().get(values.text("optimizer.name"));
  train::TrainerOptions options{.optimizer = optimizer.create(values.section("optimizer")),
                                .seed = static_cast<uint64_t>(values.integer("train.seed")),
                                .accumulate = values.integer("train.accumulate"),
                                .clip_norm = values.real("train.clip_norm"),
                                .ema_decay = values.real("train.ema_decay"),
                                .decay_all = values.boolean("optimizer.decay_all"),
                                .freeze = values.texts("train.freeze"),
                                .deterministic = values.boolean("train.deterministic"),
                                .batch_norm_ranks = values.integer("train.batch_norm_ranks"),
                                .shard_optimizer = values.boolean("train.shard_optimizer"),
                                .reduce_type = parse_data_type(values.text("train.reduce_type")),
                                .gradient_delay = values.integer("train.gradient_delay"),
                                .local_steps = values.integer("train.local_steps"),
                                .most_collective_blocks = values.integer("train.collective_blocks")};
  if (values.text("train.precision") != "auto")
    options.precision = parse_precision(values.text("train.precision"));
  if (values.has("train.recompute")) options.recompute = values.boolean("train.recompute");
  if (values.has("train.bucket_mib"))
    options.bucket_bytes = static_cast<int64_t>(values.real("train.bucket_mib") * (1 << 20));
  return options;
}

}  // namespace

train::Workload make_workload(const Recipe& recipe) {
  return train::tasks().get(recipe.task()).create(recipe.values);
}

optim::Schedule make_schedule(const Recipe& recipe, int64_t total_steps, int64_t steps_per_epoch) {
  const optim::ScheduleDescription& schedule = optim::schedules().get(recipe.values.text("schedule.name"));
  return schedule.create(recipe.values.section("schedule"), total_steps, steps_per_epoch);
}

// The processor is opened anew with the threads asked for, be it named or the fastest present.
std::shared_ptr<Device> open_device(const Recipe& recipe, std::string* fallback) {
  const Options& values = recipe.values;
  std::shared_ptr<Device> device = Device::open(values.text("train.device"), fallback);
  const int64_t threads = values.integer("train.threads");
  const bool chooses = threads > 0 && device->description().name == "cpu";
  return chooses ? Device::open(fmt::format("cpu:threads={}", threads)) : device;
}

train::TrainerOptions make_trainer_options(const Recipe& recipe, std::string* fallback) {
  train::TrainerOptions options = without_device(recipe);
  options.device = open_device(recipe, fallback);
  return options;
}

train::TrainerOptions plan_training(const Recipe& recipe, const train::Workload& workload) {
  train::TrainerOptions options = without_device(recipe);
  if (workload.phases) options.phases = workload.phases(options.optimizer);
  return options;
}

}  // namespace tessera::recipe
