// From a data set to batches: order, reading, augmentation, padding, prefetching.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/data/augment.h"
#include "tessera/data/dataset.h"
#include "tessera/data/examples.h"

namespace tessera::data {

struct LoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = true;    // anew in every epoch; otherwise in the data set's order
  bool balanced = false;  // images of each class equally often, as BatchOptions says
  bool drop_last = true;  // leave out the last, incomplete batch; otherwise it is padded
  int32_t padding_label = -1;
  uint64_t seed = 0;          // of the order and the augmentation
  int64_t workers = 1;        // threads that prepare batches; 0: Stream::next() prepares them itself
  int64_t prefetch = 4;       // batches at most that are ready or in preparation
  bool random_views = false;  // examples by Dataset::read_random()
  AugmentOptions augmentation = {};
};

// Labeled images as a source: "images" uint8 [batch, H, W, C], zeros in rows that only fill, and "labels"
// int32 [batch], padding_label there. The network's graph scales and normalizes them (nn::normalize_images).
//
//   Loader loader(dataset, {.batch_size = 128, .seed = 7});
//   const auto stream = loader.open({.epoch = 0});
//   while (std::optional<Batch> batch = stream->next()) train(*batch);
class Loader : public ExampleBatches {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range, or when the data set has not one
  // batch.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
};

}  // namespace tessera::data
