// Rows of tensors in memory as a source: what is small enough to be held whole.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/data/source.h"

namespace tessera::data {

// Rows that are trained on and rows that are not, the latter spread evenly: `share` of all, above 0 and
// below 1. Throws Error(invalid_argument) where either would have none.
struct HeldOut {
  Feeds training;
  Feeds test;
};
HeldOut hold_out(const Feeds& tensors, double share);

struct RowOptions {
  int64_t batch_size = 32;
  bool shuffle = true;    // anew in every epoch; otherwise in their order
  bool drop_last = true;  // leave out the last, incomplete batch; otherwise zeros fill it
  uint64_t seed = 0;      // of the order
  int64_t workers = 1;    // threads that prepare batches; 0: Stream::next() prepares them itself
  int64_t prefetch = 4;   // batches at most that are ready or in preparation
};

// Each tensor's first axis counts the examples; a batch holds some of them, by a field of the tensor's name.
// With several ranks a batch of each is a part of one that is as many times larger.
class Rows : public Source {
 public:
  // Throws Error(invalid_argument) when the counts differ, an option is out of range, or there is not one
  // batch.
  Rows(Feeds tensors, const RowOptions& options);

  int64_t size() const { return size_; }
  const Feeds& tensors() const { return *tensors_; }

  std::vector<Field> fields() const override;
  std::vector<SymbolBindings> sizes() const override;
  std::optional<int64_t> batches(int64_t epoch, int64_t ranks = 1) const override;
  // The stream may outlive its source.
  std::unique_ptr<Stream> open(const Cursor& from, const Partition& partition = {}) const override;
  std::unique_ptr<Stream> open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                    const Partition& partition = {}) const override;

 private:
  std::shared_ptr<const Feeds> tensors_;
  RowOptions options_;
  int64_t size_ = 0;
};

}  // namespace tessera::data
