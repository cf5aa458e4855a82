// From a data set to batches: order, reading, augmentation, padding, prefetching.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/data/augment.h"
#include "tessera/data/dataset.h"

namespace tessera::data {

struct Batch {
  Tensor images;                 // fp32 [batch_size, H, W, C]; zeros from row `valid` on
  Tensor labels;                 // int32 [batch_size]; padding_label from row `valid` on
  std::vector<int64_t> indices;  // [valid], the examples' places in the data set
  int64_t valid = 0;             // rows that are examples; the others only fill the graph's fixed shape
  int64_t number = 0;            // of the batch within its epoch
};

struct LoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = true;    // anew in every epoch; otherwise in the data set's order
  bool drop_last = true;  // leave out the last, incomplete batch; otherwise it is padded
  int32_t padding_label = -1;
  uint64_t seed = 0;     // of the order and the augmentation
  int64_t workers = 1;   // threads that prepare batches; 0: next() prepares them itself
  int64_t prefetch = 4;  // batches at most that are ready or in preparation
  AugmentOptions augmentation = {};
};

// The batches of one epoch, for one consumer. May be destroyed at any time, and outlive its Loader.
class Epoch {
 public:
  Epoch(Epoch&&) noexcept;
  Epoch& operator=(Epoch&&) noexcept;
  ~Epoch();

  // The next batch, or nothing after the last. What a worker threw while preparing a batch is thrown here
  // when its turn comes, and again by every later call.
  std::optional<Batch> next();

 private:
  friend class Loader;
  class Pipeline;
  explicit Epoch(std::unique_ptr<Pipeline> pipeline);
  std::unique_ptr<Pipeline> pipeline_;
};

// Batch k of epoch e holds the same bits whatever the number of workers and wherever the epoch was entered,
// so that a resumed run continues with loader.epoch(e, k) as if it had never stopped.
//
//   Loader loader(dataset, {.batch_size = 128, .seed = 7});
//   for (Epoch epoch = loader.epoch(0); std::optional<Batch> batch = epoch.next();) train(*batch);
class Loader {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range, or when the data set has not one
  // batch.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

  // The batches from first_batch on. Throws Error(invalid_argument) unless 0 <= first_batch <=
  // batches_per_epoch().
  Epoch epoch(uint64_t number, int64_t first_batch = 0) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  Augmenter augmenter_;
};

}  // namespace tessera::data
