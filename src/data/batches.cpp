#include "data/batches.h"

#include "tessera/base/error.h"

namespace tessera::data {

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

}  // namespace tessera::data
