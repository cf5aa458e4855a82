// A source's batches of one set of sizes, epoch after epoch.
#pragma once

#include <memory>
#include <string>

#include "tessera/compile/batch_memory.h"
#include "tessera/data/source.h"

namespace tessera::cli {

class EndlessBatches {
 public:
  // `name` is what messages call the data. Batches lie in memory that the device takes them from.
  EndlessBatches(std::string name, std::shared_ptr<const data::Source> source, data::Partition partition,
                 SymbolBindings sizes, const std::shared_ptr<Device>& device);

  // What the graph reads of the next one. Throws Error(invalid_argument) where an epoch has none of the
  // sizes.
  RunFeeds next(const Graph& graph);

 private:
  data::Batch next_batch();

  std::string name_;
  std::shared_ptr<const data::Source> source_;
  data::Partition partition_;
  SymbolBindings sizes_;
  std::shared_ptr<const BatchMemory> memory_;
  std::unique_ptr<data::Stream> stream_;
  int64_t epoch_ = 0;
  bool found_ = false;  // one in this epoch
};

}  // namespace tessera::cli
