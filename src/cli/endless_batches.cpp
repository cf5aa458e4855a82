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

Feeds EndlessBatches::next(const Graph& graph) {
  const data::Batch batch = next_batch();
  Feeds fields;
  for (const auto& input : graph.inputs()) {
    const auto field = batch.fields.find(input->name());
    if (input->role() == InputRole::input && field != batch.fields.end()) fields.insert(*field);
  }
  return fields;
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
