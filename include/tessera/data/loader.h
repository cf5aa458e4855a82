// From a data set to batches: order, reading, augmentation, padding, prefetching.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/data/augment.h"
#include "tessera/data/dataset.h"
#include "tessera/data/examples.h"
#include "tessera/data/shaped_images.h"

namespace tessera::data {

// Where files are decoded.
enum class DecodePlace : uint8_t {
  cpu,
  gpu,  // by the device that the batches are for, as far as its decoder takes them, and else by the CPU
};
// By its name in recipes: `cpu` or `gpu`.
DecodePlace decode_place_of(const std::string& name);

// How images become examples; what batches they come in, BatchOptions says.
struct ImageExampleOptions {
  int32_t padding_label = -1;  // of rows that count nothing
  bool random_views = false;   // by Dataset::read_random()
  DecodePlace decode = DecodePlace::cpu;
  AugmentOptions augmentation = {};
};

// Labeled images as a source: "images" uint8 [batch, H, W, C], zeros in rows that only fill, and "labels"
// int32 [batch], padding_label there. The network's graph scales and normalizes them (nn::normalize_images).
// Of several shapes H and W are the symbols "height" and "width", and a batch is of one.
//
//   Loader loader(dataset, {.batch_size = 128, .seed = 7});
//   const auto stream = loader.open({.epoch = 0});
//   while (std::optional<Batch> batch = stream->next()) train(*batch);
class Loader : public ExampleBatches {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range, or when the data set has not one
  // batch.
  Loader(std::shared_ptr<const Dataset> dataset, const BatchOptions& batching,
         const ImageExampleOptions& images = {});
  // With symbols also where there is one shape. What augments is of the first.
  Loader(ShapedImages shaped, const BatchOptions& batching, const ImageExampleOptions& images = {});

  const Dataset& dataset() const { return *dataset_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
};

}  // namespace tessera::data
