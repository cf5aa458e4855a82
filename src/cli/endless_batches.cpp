#include "cli/endless_batches.h"

#include <utility>

#include "tessera/base/error.h"

namespace tessera::cli {

EndlessBatches::EndlessBatches(std::string name, std::shared_ptr<const data::Source> source,
                               data::Partition partition, SymbolBindings sizes,
                               const std::shared_ptr<Device>& device)
    : name_(std::move(name)),
      source_(std::move(source)),
      partition_(partition),
      sizes_(std::move(sizes)),
      memory_(std::make_shared<BatchMemory>(device)),
      stream_(source_->open_into(memory_, {}, partition_)) {}

RunFeeds EndlessBatches::next(const Graph& graph) {
  const data::Batch batch = next_batch();
  RunFeeds feeds;
  for (const auto& input : graph.inputs()) {
    if (input->role() != InputRole::input) continue;
    const auto field = batch.fields.find(input->name());
    if (field != batch.fields.end()) feeds.host.insert(*field);
    const auto there = batch.device_fields.find(input->name());
    if (there != batch.device_fields.end()) feeds.there.insert(*there);
  }
  return feeds;
}

data::Batch EndlessBatches::next_batch() {
  for (;;) {
    while (std::optional<data::Batch> batch = stream_->next()) {
      if (batch->sizes != sizes_) continue;
      found_ = true;
      return std::move(*batch);
    }
    require(found_, ErrorCode::invalid_argument, "{}: the data has not one batch", name_);
    found_ = false;
    stream_ = source_->open_into(memory_, {.epoch = ++epoch_}, partition_);
  }
}

}  // namespace tessera::cli
