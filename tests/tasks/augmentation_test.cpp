// The augmentation of a batch on devices: the same bits for any number of threads, and what the reference
// gives.
#include "tessera/nn/augmentation.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"
#include "tessera/graph/operator.h"
#include "tessera/nn/volume_augmentation.h"

#include "support/devices.h"

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

Feeds run_on(const std::shared_ptr<Device>& device, const Graph& graph, const Feeds& feeds) {
  const Tensor counter = Tensor::from<int64_t>({2}, {5, 3});
  // How many threads compute is a setting of the thread that asks; each takes its own along when it ends.
  return std::async(std::launch::async,
                    [&] {
                      const auto executable = compile(graph, device);
                      executable->load([&](const std::string&) { return std::optional(counter); });
                      return executable->run(feeds);
                    })
      .get();
}

Feeds run_on(const std::string& device, const Graph& graph, const Feeds& feeds) {
  return run_on(Device::open(device), graph, feeds);
}

Feeds feeds_of_images() {
  Feeds feeds{{"images", Tensor(DataType::uint8, {7, 61, 53, 3})}, {"labels", Tensor(DataType::int32, {7})}};
  for (int64_t i = 0; i < feeds.at("images").size(); ++i)
    feeds.at("images").set(i, static_cast<double>(i * 37 % 256));
  return feeds;
}

Feeds made_on(const std::string& device, const Graph& graph) {
  return run_on(device, graph, feeds_of_images());
}

// Of all elements.
double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  return largest;
}

// Of one thread, and a GPU where there is one.
std::vector<std::shared_ptr<Device>> devices_beside_the_reference() {
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.front() = Device::open("cpu:threads=1");
  return devices;
}

TEST(Augmentation, GivesTheSameBitsForAnyNumberOfThreadsAndTheSameOnAllDevices) {
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
  // A rectangle's border may lie elsewhere where rounding decides, which no draw here comes near.
  for (const auto& device : devices_beside_the_reference()) {
    const Feeds made = run_on(device, graph, feeds_of_images());
    EXPECT_LE(largest_difference(made.at("images"), expected.at("images")), 0.01)
        << device->description().name;
  }
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
    for (const auto& device : devices_beside_the_reference()) {
      SCOPED_TRACE(device->description().name);
      const Tensor made = run_on(device, graph, feeds_of_images()).at("images");
      int64_t different = 0;
      for (int64_t i = 0; i < made.size(); ++i) {
        EXPECT_EQ(made.at(i), std::round(made.at(i)));
        different += made.at(i) != expected.at(i) ? 1 : 0;
      }
      // A second operation may make more of it, and a place may lie on the other side of the image's border.
      EXPECT_LE(largest_difference(made, expected), options.rand_augment.operations == 1 ? 1 : 255);
      EXPECT_LE(different, made.size() / 1000);
    }
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
  for (const char* name : {"volumes", "labels"}) EXPECT_TRUE(three.at(name).identical(one.at(name))) << name;
  for (const auto& device : devices_beside_the_reference()) {
    SCOPED_TRACE(device->description().name);
    const Feeds made = run_on(device, graph, feeds);
    EXPECT_TRUE(made.at("labels").identical(expected.at("labels")));
    // fp32 of numbers up to 326, through a power
    EXPECT_LE(largest_difference(made.at("volumes"), expected.at("volumes")), 1e-3);
  }
}

}  // namespace
}  // namespace tessera::testing
