#include "cli/named_network.h"

#include <memory>

#include "tessera/base/error.h"
#include "tessera/data/encoded.h"
#include "tessera/data/loader.h"
#include "tessera/device/common/jpeg_decoding.h"
#include "tessera/models/registry.h"
#include "tessera/tasks/image_classification.h"

#include "cli/data_repeated.h"
#include "cli/endless_batches.h"
#include "cli/subject.h"

namespace tessera::cli {
namespace {

constexpr int64_t kBatches = 1024;  // of an epoch

// The files of a folder, decoded by the device where it can.
std::shared_ptr<const data::Source> images_of_files(const Shape& image_shape, const ModelArguments& arguments,
                                                    const data::BatchOptions& batching,
                                                    const std::shared_ptr<Device>& device) {
  const auto samples = std::make_shared<const RepeatedSamples>(
      data::open_samples(arguments.loader_files, {.test_share = 0}), kBatches * arguments.batch);
  const auto dataset = std::make_shared<data::EncodedDataset>(
      samples, data::EncodedDatasetOptions{
                   .image_shape = image_shape, .mirror = true, .host_share = arguments.loader_cpu_share});
  const bool decodes = device->extension<JpegDecoding>() != nullptr;
  return std::make_shared<data::Loader>(
      dataset, batching,
      data::ImageExampleOptions{.random_views = true,
                                .decode = decodes ? data::DecodePlace::gpu : data::DecodePlace::cpu});
}

// Images as a training reads them: as bytes.
std::shared_ptr<const data::Source> images_of(const models::ClassifierOptions& options,
                                              const ModelArguments& arguments,
                                              const std::shared_ptr<Device>& device) {
  const Shape image_shape{options.image_size, options.image_size, options.channels};
  const data::BatchOptions batching{.batch_size = arguments.batch, .workers = arguments.loader_workers};
  if (!arguments.loader_files.empty()) return images_of_files(image_shape, arguments, batching, device);
  const auto dataset = std::make_shared<data::SyntheticDataset>(data::SyntheticOptions{
      .size = kBatches * arguments.batch, .image_shape = image_shape, .classes = options.classes});
  return std::make_shared<data::Loader>(dataset, batching,
                                        data::ImageExampleOptions{.augmentation = {.horizontal_flip = true}});
}

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

  std::function<RunFeeds()> loader(const CompiledModel& compiled) const override {
    const auto images = std::make_shared<EndlessBatches>(
        arguments().model, images_of(network_.options, arguments(), compiled.device), data::Partition{},
        SymbolBindings{{"batch", arguments().batch}}, compiled.device);
    return [images, &graph = *compiled.step.graph] { return images->next(graph); };
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
  require(arguments.loader_files.empty(), ErrorCode::invalid_argument,
          "--files is for networks by name, and '{}' is none (of a recipe: --set data.path=... and "
          "data.decode=gpu)",
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
