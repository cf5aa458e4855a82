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

TEST(Augmentation, GivesTheSameBitsForAnyNumberOfThreads) {
  Graph graph("augmentation");
  build(graph);
  Feeds feeds{{"images", Tensor(DataType::uint8, {7, 61, 53, 3})}, {"labels", Tensor(DataType::int32, {7})}};
  for (int64_t i = 0; i < feeds.at("images").size(); ++i)
    feeds.at("images").set(i, static_cast<double>(i * 37 % 256));
  const Tensor counter = Tensor::from<int64_t>({2}, {5, 3});
  // How many threads compute is a setting of the thread that asks; each takes its own along when it ends.
  const auto on = [&](const std::string& device) {
    return std::async(std::launch::async,
                      [&] {
                        const auto executable = compile(graph, Device::open(device));
                        executable->load([&](const std::string&) { return std::optional(counter); });
                        return executable->run(feeds);
                      })
        .get();
  };
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

}  // namespace
}  // namespace tessera::testing
