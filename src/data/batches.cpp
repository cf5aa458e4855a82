#include "data/batches.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/data/order.h"

namespace tessera::data {

bool is_held_out(int64_t place, double share) {
  const auto before = static_cast<double>(place);
  return std::floor((before + 1) * share) > std::floor(before * share);
}

int64_t batches_of(int64_t size, int64_t batch_size, bool drop_last) {
  return size / batch_size + (!drop_last && size % batch_size != 0 ? 1 : 0);
}

int64_t batches_from(const Source& source, const Cursor& from, const Partition& partition) {
  const auto code = ErrorCode::invalid_argument;
  require(partition.ranks > 0 && partition.rank >= 0 && partition.rank < partition.ranks, code,
          "rank {} of {} ranks", partition.rank, partition.ranks);
  const int64_t count = *source.batches(from.epoch, partition.ranks);
  require(from.epoch >= 0 && from.batch >= 0 && from.batch <= count, code,
          "there is no batch {} in epoch {}, which has {} batches", from.batch, from.epoch, count);
  return count;
}

std::vector<int64_t> epoch_order(int64_t size, bool shuffle, uint64_t seed, int64_t epoch) {
  return shuffle ? shuffled_order(size, seed, static_cast<uint64_t>(epoch)) : sequential_order(size);
}

Batch batch_without_fields(const std::vector<int64_t>& order, int64_t batch_size, int64_t epoch,
                           int64_t number, const Partition& partition) {
  const int64_t begin = (number * partition.ranks + partition.rank) * batch_size;
  Batch batch{.sizes = {{kBatch, batch_size}},
              .samples = std::clamp<int64_t>(std::ssize(order) - begin, 0, batch_size),
              .after = {.epoch = epoch, .batch = number + 1}};
  if (batch.samples > 0) batch.indices.assign(order.begin() + begin, order.begin() + begin + batch.samples);
  return batch;
}

Batch Batch::on_host() const {
  Batch batch = *this;
  batch.fields = RunFeeds{.host = fields, .there = device_fields}.on_host();
  batch.device_fields.clear();
  return batch;
}

Tensor batch_tensor(const BatchMemory* memory, DataType type, const Shape& shape) {
  return memory != nullptr ? memory->tensor(type, shape) : Tensor(type, shape);
}

}  // namespace tessera::data
