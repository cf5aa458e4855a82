// The augmentation of a batch on a processor: the same bits for any number of threads, and what the reference
// gives.
#include "tessera/nn/augmentation.h"

#include <cmath>
#include <future>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"
#include "tessera/graph/operator.h"
#include "tessera/nn/volume_augmentation.h"

namespace tessera::testing {
namespace {

void build(Graph& graph) {
  const nn::AugmentationOptions options{.brightness = 0.4,
                                        .contrast = 0.4,
                                        .saturation = 0.4,
                                        .hue = 0.1,
                                        .grayscale = 0.2,
                                        .erasing = 0.5,
                                        .mixup = 0.2,
                                        .cutmix = 1};
  nn::Context context(graph, nn::Mode::training);
  Value* images = graph.add_input(InputRole::input, "images", {DataType::uint8, {7, 61, 53, 3}});
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::int32, {7}});
  const nn::Mixed mixed =
      nn::mix_images(context, nn::augment_images(context, images, options), labels, options);
  graph.add_output("images", mixed.images);
  graph.add_output("share", mixed.share);
}

Feeds run_on(const std::string& device, const Graph& graph, const Feeds& feeds) {
  const Tensor counter = Tensor::from<int64_t>({2}, {5, 3});
  // How many threads compute is a setting of the thread that asks; each takes its own along when it ends.
  return std::async(std::launch::async,
                    [&] {
                      const auto executable = compile(graph, Device::open(device));
                      executable->load([&](const std::string&) { return std::optional(counter); });
                      return executable->run(feeds);
                    })
      .get();
}

Feeds made_on(const std::string& device, const Graph& graph) {
  Feeds feeds{{"images", Tensor(DataType::uint8, {7, 61, 53, 3})}, {"labels", Tensor(DataType::int32, {7})}};
  for (int64_t i = 0; i < feeds.at("images").size(); ++i)
    feeds.at("images").set(i, static_cast<double>(i * 37 % 256));
  return run_on(device, graph, feeds);
}

TEST(Augmentation, GivesTheSameBitsForAnyNumberOfThreads) {
  Graph graph("augmentation");
  build(graph);
  const auto on = [&](const std::string& device) { return made_on(device, graph); };
  const Feeds expected = on("reference");
  const Feeds one = on("cpu:threads=1");
  for (const char* device : {"cpu:threads=2", "cpu:threads=3"}) {
    const Feeds several = on(device);
    EXPECT_TRUE(several.at("images").identical(one.at("images"))) << device;
    EXPECT_TRUE(several.at("share").identical(one.at("share"))) << device;
  }
  double largest =
      0;  // a rectangle's border may lie elsewhere where rounding decides, which no draw here comes near
  for (int64_t i = 0; i < one.at("images").size(); ++i)
    largest = std::max(largest, std::abs(one.at("images").at(i) - expected.at("images").at(i)));
  EXPECT_LE(largest, 0.01);
}

// Pixels are chosen by whole numbers, and levels are whole. A level may be the next one where rounding
// decides.
TEST(Augmentation, GivesTheSameOperationsOnAllDevices) {
  const nn::AugmentationOptions one_operation{.rand_augment = {.operations = 1}};
  const nn::AugmentationOptions two_operations{.rand_augment = {.operations = 2}};
  const nn::AugmentationOptions affine{
      .affine = {.degrees = 30, .translation = 0.1, .scale = 0.2, .shear = 10, .probability = 0.8}};
  for (const nn::AugmentationOptions& options : {one_operation, two_operations, affine}) {
    Graph graph("augmentation");
    nn::Context context(graph, nn::Mode::training);
    Value* images = graph.add_input(InputRole::input, "images", {DataType::uint8, {7, 61, 53, 3}});
    graph.add_input(InputRole::input, "labels", {DataType::int32, {7}});
    graph.add_output("images", nn::augment_images(context, images, options));
    const Tensor expected = made_on("reference", graph).at("images");
    const Tensor one = made_on("cpu:threads=1", graph).at("images");
    EXPECT_TRUE(made_on("cpu:threads=3", graph).at("images").identical(one));
    int64_t different = 0;
    double largest = 0;
    for (int64_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one.at(i), std::round(one.at(i)));
      const double difference = std::abs(one.at(i) - expected.at(i));
      different += difference != 0 ? 1 : 0;
      largest = std::max(largest, difference);
    }
    // A second operation may make more of it, and a place may lie on the other side of the image's border.
    EXPECT_LE(largest, options.rand_augment.operations == 1 ? 1 : 255);
    EXPECT_LE(different, one.size() / 1000);
  }
}

// Voxels are chosen by whole numbers.
TEST(Augmentation, GivesTheSameVolumesOnAllDevices) {
  const nn::VolumeAugmentationOptions options{.crop = {{9, 12, 16}},
                                              .flip = 0.5,
                                              .brightness = 0.3,
                                              .noise = 0.2,
                                              .minimum_gamma = 0.7,
                                              .maximum_gamma = 1.5};
  Graph graph("volumes");
  nn::Context context(graph, nn::Mode::training);
  Value* volumes = graph.add_input(InputRole::input, "volumes", {DataType::fp32, {3, 11, 15, 17, 2}});
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::uint8, {3, 11, 15, 17, 1}});
  const nn::LabeledVolumes result = nn::augment_volumes(context, {volumes, labels}, options);
  graph.add_output("volumes", result.volumes);
  graph.add_output("labels", result.labels);
  Feeds feeds{{"volumes", Tensor(DataType::fp32, {3, 11, 15, 17, 2})},
              {"labels", Tensor(DataType::uint8, {3, 11, 15, 17, 1})}};
  for (auto& [name, tensor] : feeds)
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i * 37 % 251));
  const Feeds expected = run_on("reference", graph, feeds);
  const Feeds one = run_on("cpu:threads=1", graph, feeds);
  const Feeds three = run_on("cpu:threads=3", graph, feeds);
  EXPECT_TRUE(one.at("labels").identical(expected.at("labels")));
  for (const char* name : {"volumes", "labels"}) EXPECT_TRUE(three.at(name).identical(one.at(name))) << name;
  double largest = 0;
  for (int64_t i = 0; i < one.at("volumes").size(); ++i)
    largest = std::max(largest, std::abs(one.at("volumes").at(i) - expected.at("volumes").at(i)));
  EXPECT_LE(largest, 1e-3);  // fp32 of numbers up to 326, through a power
}

}  // namespace
}  // namespace tessera::testing
