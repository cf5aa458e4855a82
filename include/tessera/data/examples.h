// Examples of any kind, and the batches that a network is given of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/device_rows.h"
#include "tessera/data/random_view.h"
#include "tessera/data/source.h"

namespace tessera::data {

// Where an example belongs in each field of a batch, in the order of Examples::fields().
using ExampleRow = std::vector<std::span<std::byte>>;

// The row's part of a field of that type.
template <typename T>
std::span<T> elements_of(const ExampleRow& row, size_t field) {
  return {reinterpret_cast<T*>(row[field].data()), row[field].size() / sizeof(T)};
}

// Examples that are made one by one. All is const and safe from several threads at once.
class Examples {
 public:
  virtual ~Examples() = default;

  virtual int64_t size() const = 0;
  // What a batch of them holds: the first extent of each field is the symbol "batch"; other symbols are bound
  // by the buckets. Elements are of whole bytes.
  virtual std::vector<Field> fields() const = 0;
  // The sizes that an example's part of the fields may have, and of which of them an example is: a batch
  // holds examples of one.
  virtual std::vector<SymbolBindings> buckets() const { return {{}}; }
  virtual int64_t bucket_of(int64_t /*index*/) const { return 0; }
  // Of which class an example is; -1: of none, or it is not known without reading it.
  virtual int32_t class_of(int64_t /*index*/) const { return -1; }
  // Writes example `index`, 0 <= index < size(), the same bits for the same arguments.
  virtual void read(int64_t index, const RandomView& view, const ExampleRow& row) const = 0;
  // Which of the fields the device makes in its own memory, as far as it can, for a batch that is for it;
  // none: all are the host's. Throws Error(unsupported) where it is wanted to and cannot.
  virtual std::optional<size_t> field_made_by(Device& /*device*/) const { return std::nullopt; }
  // Several, the first so many of a batch: read() of each, but for what a device makes. Where one makes a
  // field, the rows' parts of it are empty, and each is to be written to `made` instead; else that is null.
  virtual void read_rows(std::span<const int64_t> indices, const RandomView& view,
                         std::span<const ExampleRow> rows, DeviceRows* made) const;
  // What is in rows that only fill a batch: zeros.
  virtual void fill(const ExampleRow& row) const;
  // What a report says of the examples that were read so far, a sentence each.
  virtual std::vector<std::string> remarks() const { return {}; }
};

struct BatchOptions {
  int64_t batch_size = 32;
  // Of each bucket, in place of batch_size: more rows where they are short, for batches of like cost. Empty:
  // all have batch_size.
  std::vector<int64_t> batch_sizes = {};
  bool shuffle = true;  // anew in every epoch; otherwise in their order
  // Examples of each class equally often, in as many batches: those of a rare class several times in an
  // epoch, of a frequent one others in each. Needs `shuffle`, and a class of every example.
  bool balanced = false;
  bool drop_last = true;  // leave out the last, incomplete batch (of each bucket); otherwise rows that fill
  uint64_t seed = 0;      // of the order, and of the examples' views
  int64_t workers = 1;    // threads that prepare batches; 0: Stream::next() prepares them itself
  int64_t prefetch = 4;   // batches at most that are ready or in preparation
};

class ClassBalance;

// A batch holds the same bits whatever the number of workers. With several ranks a batch of each is a part of
// one that is as many times larger, so that the order of the examples depends on their number in that way
// only. Batches of several buckets come in a random order, or one bucket after the other without `shuffle`.
class ExampleBatches : public Source {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range, or when there is not one batch.
  ExampleBatches(std::shared_ptr<const Examples> examples, const BatchOptions& options);

  const Examples& examples() const { return *examples_; }
  const BatchOptions& options() const { return options_; }

  std::vector<Field> fields() const override { return examples_->fields(); }
  std::vector<SymbolBindings> sizes() const override;
  std::optional<int64_t> batches(int64_t epoch, int64_t ranks = 1) const override;
  // The stream may be destroyed at any time, and outlive its source.
  std::unique_ptr<Stream> open(const Cursor& from, const Partition& partition = {}) const override;
  std::unique_ptr<Stream> open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                    const Partition& partition = {}) const override;
  std::shared_ptr<const Source> in_batches_of(int64_t samples) const override;
  std::vector<std::string> remarks() const override { return examples_->remarks(); }

 private:
  std::shared_ptr<const Examples> examples_;
  BatchOptions options_;                         // with batch_sizes
  std::shared_ptr<const ClassBalance> balance_;  // null: each example once in an epoch
  std::vector<int64_t> counts_;                  // examples of each bucket, in an epoch
};

}  // namespace tessera::data
