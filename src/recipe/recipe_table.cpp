#include "recipe/recipe_table.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/optim/registry.h"
#include "tessera/train/task_registry.h"

namespace tessera::recipe {
namespace {

// What every recipe has, beside what task, optimizer and schedule bring.

std::vector<Option> task_options() {
  return {{.key = "name",
           .value = train::default_task().name,
           .documentation = "What the network is trained for",
           .choices = train::tasks().names(),
           .resuming = Resuming::fixed}};
}

std::vector<Option> optimizer_options() {
  return {{.key = "name", .value = std::string("sgd"), .documentation = "The update rule"}};
}

std::vector<Option> decay_options() {
  return {{.key = "decay_all",
           .value = true,
           .documentation = "Whether biases and the parameters of normalizations are decayed too"}};
}

std::vector<Option> schedule_options() {
  return {{.key = "name",
           .value = std::string("constant"),
           .documentation = "Course of the learning rate, set anew at every step"}};
}

std::vector<Option> model_options() {
  return {{.key = "weights",
           .value = std::string(),
           .documentation = "Safetensors file to start from; empty: random weights from `train.seed`",
           .is_path = true,
           .resuming = Resuming::free}};
}

std::vector<Option> step_options() {
  return {
      {.key = "epochs",
       .value = int64_t{10},
       .documentation = "Passes over the training data",
       .limits = Limits::between(1, 1e6),
       .by_stage = true},
      {.key = "steps",
       .value = int64_t{0},
       .documentation = "Updates in place of `train.epochs`; 0: those of the epochs",
       .limits = Limits::between(0, 1e9),
       .by_stage = true},
      {.key = "batch",
       .value = int64_t{128},
       .documentation = "Samples of one forward and backward pass, of all ranks together",
       .limits = Limits::between(1, 1e6),
       .resuming = Resuming::fixed,
       .by_stage = true},
      {.key = "fit_batch",
       .value = false,
       .documentation =
           "`train.batch` is the largest: the run takes the batch that leaves the fewest samples out of an "
           "epoch of as few updates as they allow",
       .resuming = Resuming::fixed,
       .by_stage = true},
      {.key = "precision",
       .value = std::string("auto"),
       .documentation =
           "Type of activations and gradients; weights and sums stay in fp32. `auto`: tf32 on a GPU unless "
           "NVIDIA_TF32_OVERRIDE=0 forbids it, fp32 elsewhere; `fp32`; `tf32`: fp32 whose factors a GPU "
           "rounds to "
           "11 significant bits, exact on a processor; `bf16`; `fp16`",
       .choices = {"auto", "fp32", "tf32", "bf16", "fp16"}},
      {.key = "seed",
       .value = int64_t{1},
       .documentation = "The one source of all randomness; same seed, same machine, same bits",
       .limits = Limits::at_least(0),
       .resuming = Resuming::fixed},
      {.key = "device",
       .value = std::string("auto"),
       .documentation =
           "`auto` (the fastest present), `cpu`, `cuda`, `cuda:N`, `reference` or a plug-in's name",
       .resuming = Resuming::free},
      {.key = "threads",
       .value = int64_t{0},
       .documentation = "Threads of the processor as a device; 0: as OMP_NUM_THREADS says, or else one per "
                        "core that may be used",
       .limits = Limits::between(0, 4096),
       .resuming = Resuming::free},
      {.key = "accumulate",
       .value = int64_t{1},
       .documentation = "Batches whose gradients make one update",
       .limits = Limits::between(1, 65536),
       .resuming = Resuming::fixed,
       .by_stage = true},
      {.key = "batch_norm_ranks",
       .value = int64_t{1},
       .documentation =
           "Where several ranks train: batch normalization over the rows of so many of them, which are "
           "neighbors; 1: of each rank its own, 0: of all",
       .limits = Limits::at_least(0)},
      {.key = "shard_optimizer",
       .value = false,
       .documentation =
           "Where several ranks train: each keeps the optimizer's state of its part of every parameter alone "
           "and updates that part (ZeRO stage 1): less memory, the same updates"},
      {.key = "reduce_type",
       .value = std::string("fp32"),
       .documentation =
           "Where several ranks train: the type in which gradients travel. `bf16` and, with the precision "
           "fp16, `fp16` take half the time",
       .choices = {"fp32", "bf16", "fp16"}},
      {.key = "gradient_delay",
       .value = int64_t{0},
       .documentation =
           "1: an update takes the gradients of the step before, so that several ranks exchange them while "
           "they compute the next ones; 0: those of its own step",
       .limits = Limits::between(0, 1)},
      {.key = "local_steps",
       .value = int64_t{1},
       .documentation =
           "Where several ranks train: steps that each makes by itself until parameters and the optimizer's "
           "state become the means of all (local SGD); 1: all ranks make the same steps",
       .limits = Limits::between(1, 1e6)},
      {.key = "bucket_mib",
       .value = 25.0,
       .documentation =
           "Where several ranks train: MiB of gradients that travel together, each bucket as soon as it is "
           "made; 0: all at once, after the last",
       .limits = Limits::at_least(0),
       .unset = "25 where GPUs exchange them beside their work, else 0",
       .resuming = Resuming::free},
      {.key = "collective_blocks",
       .value = int64_t{0},
       .documentation =
           "Where GPUs exchange gradients: thread blocks that this takes at most from the rest of the step; "
           "0: as NCCL likes it",
       .limits = Limits::between(0, 64),
       .resuming = Resuming::free},
      {.key = "clip_norm",
       .value = 0.0,
       .documentation = "Largest norm of all gradients together; 0: not clipped",
       .limits = Limits::at_least(0),
       .by_stage = true},
      {.key = "ema_decay",
       .value = 0.0,
       .documentation = "Decay per update of the running average of the weights that is evaluated; 0: none",
       .limits = Limits::fraction()},
      {.key = "freeze",
       .value = std::vector<std::string>{},
       .documentation =
           "What names of variables begin with that stay as they are, such as `encoder.`: parameters are not "
           "trained, batch normalization takes its running statistics. With `model.weights`, fine tuning",
       .resuming = Resuming::fixed},
      {.key = "recompute",
       .value = false,
       .documentation = "Recompute cheap activations for the gradients instead of keeping them: less memory, "
                        "the same numbers, a little slower",
       .unset = "those of at most 32 MiB; on a GPU a few",
       .resuming = Resuming::free},
      {.key = "deterministic",
       .value = true,
       .documentation =
           "The same bits at every run; `false` allows a GPU faster kernels whose sums vary in their order"},
  };
}

std::vector<Option> saving_options() {
  return {
      {.key = "evaluate_every",
       .value = int64_t{1},
       .documentation = "Epochs between evaluations; 0: only after the last",
       .limits = Limits::between(0, 1e6),
       .resuming = Resuming::free,
       .by_stage = true},
      {.key = "evaluate_beside",
       .value = false,
       .documentation =
           "Whether the run leaves its evaluations, of the same epochs, to another process, `tessera eval "
           "RUN --follow`, and trains on meanwhile",
       .resuming = Resuming::fixed},
      {.key = "keep_unevaluated",
       .value = int64_t{16},
       .documentation =
           "Weights at most that wait for that process: those of more evaluations, but for the last, are "
           "left out with a warning; 0: all are kept",
       .limits = Limits::between(0, 1e6),
       .resuming = Resuming::free},
      {.key = "carried",
       .value = std::string("moments"),
       .documentation =
           "What a stage after the first takes over of the optimizer's state. `moments`: but steps are "
           "counted "
           "anew for the correction of their bias, as in NVIDIA's pretraining of BERT; `all`: as it is",
       .choices = {"moments", "all"},
       .by_stage = true},
      {.key = "checkpoint_every",
       .value = int64_t{1},
       .documentation =
           "Epochs between checkpoints; 0: none by epochs. There is one after the last in any case",
       .limits = Limits::between(0, 1e6),
       .resuming = Resuming::free},
      {.key = "checkpoint_steps",
       .value = int64_t{0},
       .documentation = "Updates between checkpoints, beside those by epochs; 0: none by updates",
       .limits = Limits::between(0, 1e9),
       .resuming = Resuming::free},
      {.key = "checkpoint_minutes",
       .value = 0.0,
       .documentation = "Minutes between checkpoints, beside the others; 0: none by time",
       .limits = Limits::between(0, 1e6),
       .resuming = Resuming::free},
      {.key = "keep_checkpoints",
       .value = int64_t{1},
       .documentation = "The last so many checkpoints stay: `last.safetensors`, and those before it as "
                        "`step-NUMBER.safetensors`; 0: all",
       .limits = Limits::between(0, 1e6),
       .resuming = Resuming::free},
  };
}

// Made once, for the tables point to them.
struct CommonOptions {
  std::vector<Option> task = task_options();
  std::vector<Option> model = model_options();
  std::vector<Option> step = step_options();
  std::vector<Option> saving = saving_options();
  std::vector<Option> optimizer = optimizer_options();
  std::vector<Option> decay = decay_options();
  std::vector<Option> schedule = schedule_options();
};

const CommonOptions& common_options() {
  static const CommonOptions options;
  return options;
}

}  // namespace

std::optional<OptionValue> RecipeField::default_value(const std::string& choice) const {
  const Option* chosen = option;
  for (const auto& [name, own] : by_choice) {
    if (name == choice) chosen = own;
  }
  return chosen->unset.empty() ? std::optional<OptionValue>(chosen->value) : std::nullopt;
}

bool RecipeField::has_effect(const std::string& choice) const {
  return used_by.empty() || std::find(used_by.begin(), used_by.end(), choice) != used_by.end();
}

bool RecipeField::is_by_stage() const {
  if (section == "optimizer") return key() != "name";
  return section == "data" || section == "schedule" || option->by_stage;
}

RecipeTable::RecipeTable(const std::string& task) {
  const CommonOptions& common = common_options();
  add("task", common.task);
  const auto of_task = [&](const std::string& section) {
    for (const train::OptionSection& own : train::tasks().get(task).sections) {
      if (own.name != section) continue;
      add(section, own.options);
      if (own.choices) add_choices(section, own.choices());
    }
  };
  of_task("task");
  of_task("model");
  add("model", common.model);
  for (const train::OptionSection& own : train::tasks().get(task).sections) {
    if (own.name != "task" && own.name != "model" && own.name != "train") of_task(own.name);
  }
  add("train", common.step);
  of_task("train");
  add("train", common.saving);
  add("optimizer", common.optimizer);
  add_choices("optimizer", choices_of(optim::optimizers()));
  add("optimizer", common.decay);
  add("schedule", common.schedule);
  add_choices("schedule", choices_of(optim::schedules()));
}

void RecipeTable::add(const std::string& section, const std::vector<Option>& options) {
  for (const Option& option : options) {
    require(find(section, option.key) == nullptr, ErrorCode::internal, "two options are called '{}.{}'",
            section, option.key);
    fields_.push_back(
        {.section = section, .option = &option, .used_by = option.used_by, .choices = option.choices});
  }
}

// Their options come after the choice.
void RecipeTable::add_choices(const std::string& section, const std::vector<OptionChoice>& choices) {
  auto place = &selector(section) - fields_.data();
  RecipeField& chooser = fields_[static_cast<size_t>(place)];
  for (const OptionChoice& choice : choices) {
    chooser.choices.push_back(choice.name);
    if (!choice.documentation.empty()) chooser.choice_documentation.push_back(choice.documentation);
  }
  for (const OptionChoice& choice : choices) {
    for (const Option& option : *choice.options) {
      auto known = std::find_if(fields_.begin(), fields_.end(), [&](const RecipeField& field) {
        return field.section == section && field.key() == option.key;
      });
      if (known == fields_.end()) known = fields_.insert(fields_.begin() + ++place, {section, &option});
      require(!known->by_choice.empty() || known->option == &option, ErrorCode::internal,
              "two options are called '{}.{}'", section, option.key);
      known->by_choice.emplace_back(choice.name, &option);
    }
  }
  for (RecipeField& field : fields_) {
    if (field.section != section || field.by_choice.empty() || field.by_choice.size() == choices.size())
      continue;
    for (const auto& [name, option] : field.by_choice) field.used_by.push_back(name);
  }
}

const RecipeField* RecipeTable::find(std::string_view section, std::string_view key) const {
  for (const RecipeField& field : fields_) {
    if (field.section == section && field.key() == key) return &field;
  }
  return nullptr;
}

bool RecipeTable::has_section(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const RecipeField& field) { return field.section == name; });
}

const RecipeField& RecipeTable::selector(std::string_view section) const {
  const auto first = std::find_if(fields_.begin(), fields_.end(),
                                  [&](const RecipeField& field) { return field.section == section; });
  require(first != fields_.end(), ErrorCode::internal, "recipes have no section '{}'", section);
  return *first;
}

std::string RecipeTable::choice(const Recipe& recipe, const RecipeField& field) const {
  if (field.used_by.empty() && field.by_choice.empty()) return "";
  return recipe.values.text(selector(field.section).path());
}

const RecipeTable& recipe_table(const std::string& task) {
  static std::mutex mutex;
  static std::map<std::string, RecipeTable> tables;
  const std::string known = train::tasks().find(task) != nullptr ? task : train::default_task().name;
  const std::lock_guard lock(mutex);
  return tables.try_emplace(known, known).first->second;
}

bool has_key(const std::string& task, std::string_view section, std::string_view key) {
  return recipe_table(task).find(section, key) != nullptr;
}

}  // namespace tessera::recipe
