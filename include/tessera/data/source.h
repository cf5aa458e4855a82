// Where batches come from, whatever they hold: named fields in some sizes, and a place to go on from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/compile/batch_memory.h"
#include "tessera/compile/device_tensor.h"
#include "tessera/compile/feeds.h"
#include "tessera/graph/field.h"

namespace tessera::data {

// A place in the data: the next batch of an epoch, and what else a source needs to go on from there, in its
// own words. Part of a checkpoint.
struct Cursor {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch
  std::string state = {};
  bool operator==(const Cursor&) const = default;
};

// Which part of each batch one of several processes takes.
struct Partition {
  int64_t rank = 0;
  int64_t ranks = 1;
};

struct Batch {
  Feeds fields;                  // by name, with the extents of `sizes`
  DeviceFeeds device_fields;     // those that lie on the device that open_into() was given memory of
  SymbolBindings sizes;          // one of Source::sizes()
  int64_t samples = 0;           // rows that are examples; those after them only fill the graph's fixed shape
  std::vector<int64_t> indices;  // [samples], the examples' places in the data; empty where they have none
  Cursor after;                  // where the next batch begins

  // With all fields on the host: those of the device are copied, and waited for.
  Batch on_host() const;
};

// The batches of one epoch, or all that follow where the data has no epochs, for one consumer.
class Stream {
 public:
  virtual ~Stream() = default;
  // The next batch, or nothing after the last. Throws what making the batch threw, and again at every later
  // call.
  virtual std::optional<Batch> next() = 0;
};

// Batch k of epoch e holds the same bits wherever the stream was opened, so that a resumed run goes on as if
// it had never stopped. May be opened several times, from several threads.
class Source {
 public:
  virtual ~Source() = default;

  // What every batch holds, with symbols for the extents that `sizes` gives.
  virtual std::vector<Field> fields() const = 0;
  // The values that those symbols take: one, or one for each bucket.
  virtual std::vector<SymbolBindings> sizes() const = 0;
  // Batches of an epoch for each of `ranks` processes; none: the data does not end.
  virtual std::optional<int64_t> batches(int64_t epoch, int64_t ranks = 1) const = 0;
  // Throws Error(invalid_argument) when the epoch has no such place.
  virtual std::unique_ptr<Stream> open(const Cursor& from, const Partition& partition = {}) const = 0;
  // The same batches, in such memory where the source can write them there: a GPU takes what lies there
  // beside its work, as it is. Fields that the device itself makes stay there (Batch::device_fields). What a
  // source that does not override this makes lies elsewhere, and the training thread copies it there at every
  // step.
  virtual std::unique_ptr<Stream> open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                            const Partition& partition = {}) const {
    return open(from, partition);
  }
  // The same data in batches of so many samples; null where batches are not of one number of samples, or the
  // samples that fill them are not those of the data, such as pieces of one long text.
  virtual std::shared_ptr<const Source> in_batches_of(int64_t /*samples*/) const { return nullptr; }
  // What a report says of the data that was read so far, a sentence each.
  virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace tessera::data
