#include "cli/named_network.h"

#include <optional>

#include "tessera/base/error.h"
#include "tessera/compile/batch_memory.h"
#include "tessera/data/loader.h"
#include "tessera/models/registry.h"
#include "tessera/tasks/image_classification.h"

#include "cli/subject.h"

namespace tessera::cli {
namespace {

// Synthetic images as a training reads them: as bytes, by a loader.
class LoadedImages {
 public:
  LoadedImages(const models::ClassifierOptions& options, const ModelArguments& arguments,
               std::shared_ptr<Device> device)
      : loader_(dataset(options, arguments.batch), {.batch_size = arguments.batch,
                                                    .workers = arguments.loader_workers,
                                                    .augmentation = {.horizontal_flip = true}}),
        memory_(std::make_shared<BatchMemory>(std::move(device))) {}

  Feeds next() {
    std::optional<data::Batch> batch = stream_ != nullptr ? stream_->next() : std::nullopt;
    if (!batch.has_value()) {
      stream_ = loader_.open_into(memory_, {.epoch = epoch_++});
      batch = stream_->next();
    }
    return std::move(batch->fields);
  }

 private:
  static std::shared_ptr<const data::Dataset> dataset(const models::ClassifierOptions& options,
                                                      int64_t batch) {
    constexpr int64_t kBatches = 1024;
    return std::make_shared<data::SyntheticDataset>(
        data::SyntheticOptions{.size = kBatches * batch,
                               .image_shape = {options.image_size, options.image_size, options.channels},
                               .classes = options.classes});
  }

  data::Loader loader_;
  std::shared_ptr<const BatchMemory> memory_;
  std::unique_ptr<data::Stream> stream_;
  int64_t epoch_ = 0;
};

class NamedNetwork : public Subject {
 public:
  explicit NamedNetwork(const ModelArguments& arguments)
      : Subject(arguments), network_(named_network(arguments)) {}

  std::string samples() const override { return task().samples; }
  int64_t local_steps() const override { return arguments().local_steps; }

  CompiledModel compile(train::StepKind kind, std::shared_ptr<Workspace> workspace) const override {
    CompiledModel result;
    result.batch = arguments().batch;
    CompileOptions options = compile_options_of(arguments());
    if (arguments().train) {
      // As bench/README.md has it for every peer.
      const optim::SgdOptions descent{.learning_rate = kLearningRate, .momentum = 0.9, .weight_decay = 5e-5};
      result.step = train::build_training_step(
          task(),
          {.sizes = {{"batch", arguments().batch}},
           .phase = {.groups = {{.optimizer = optim::sgd(descent)}}},
           .precision = options.passes.precision,
           .decay_all = true,
           .ranks = arguments().ranks,
           .shard_optimizer = arguments().shard_optimizer,
           .reduce_type = parse_data_type(arguments().reduce_type.value_or("fp32")),
           .gradient_delay = arguments().delays_gradients ? 1 : 0,
           .local_steps = arguments().local_steps},
          kind);
    } else {
      models::Network network = models::build(network_, arguments().batch);
      result.step = {std::move(network.graph), std::move(network.variables)};
    }
    open_device(result, workspace);
    compile_graph(result, std::move(options), std::move(workspace));
    return result;
  }

  Feeds inputs(const CompiledModel& compiled) const override {
    return synthetic_inputs(*compiled.step.graph, network_.options.classes);
  }

  std::function<Feeds()> loader(const CompiledModel& compiled) const override {
    return [images = std::make_shared<LoadedImages>(network_.options, arguments(), compiled.device)] {
      return images->next();
    };
  }

 private:
  nn::Task task() const {
    const bool as_bytes = arguments().loader_workers > 0;
    return tasks::image_classification(network_,
                                       {.images = {.type = as_bytes ? DataType::uint8 : DataType::fp32}});
  }

  models::Model network_;
};

}  // namespace

void add_network_options(CLI::App& command, NamedNetworkArguments& arguments) {
  command
      .add_option("--image-size", arguments.image_size,
                  "Of a network by name: height and width in pixels (default: its own)")
      ->check(CLI::PositiveNumber);
  command.add_option("--classes", arguments.classes, "Of a network by name: its outputs (default: its own)")
      ->check(CLI::PositiveNumber);
}

void refuse_network_options(const ModelArguments& arguments) {
  require(arguments.network.image_size == 0 && arguments.network.classes == 0, ErrorCode::invalid_argument,
          "--image-size and --classes are of networks by name, and '{}' is none (of a recipe: --set "
          "data.image_size=... and the like)",
          arguments.model);
}

std::unique_ptr<Subject> open_named_network(const ModelArguments& arguments) {
  return std::make_unique<NamedNetwork>(arguments);
}

models::Model named_network(const ModelArguments& arguments) {
  models::ClassifierOptions options = models::describe(arguments.model).defaults;
  if (arguments.network.image_size > 0) options.image_size = arguments.network.image_size;
  if (arguments.network.classes > 0) options.classes = arguments.network.classes;
  return models::create(arguments.model, options);
}

nn::Task task_of_network(const std::string& name) {
  return tasks::image_classification(models::create(name), {.images = {.type = DataType::fp32}});
}

}  // namespace tessera::cli
