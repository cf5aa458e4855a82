#include "tessera/nn/shard.h"

#include <algorithm>
#include <cstring>

namespace tessera::nn {
namespace {

// Elements that are whole bytes, from the `first` of `from` to the beginning of `to`.
void copy_elements(const Tensor& from, int64_t first, int64_t count, Tensor& to) {
  const auto width = static_cast<int64_t>(size_of(from.data_type()));
  if (count > 0)
    std::memcpy(to.raw(), static_cast<const char*>(from.raw()) + first * width,
                static_cast<size_t>(count * width));
}

}  // namespace

int64_t Shard::size() const {
  return (element_count(whole) + ranks - 1) / ranks;
}

int64_t Shard::first() const {
  return std::min(rank * size(), element_count(whole));
}

int64_t Shard::count() const {
  return std::min(size(), element_count(whole) - first());
}

Tensor part_of(const Shard& shard, const Tensor& whole) {
  Tensor part(whole.data_type(), {shard.size()});
  copy_elements(whole, shard.first(), shard.count(), part);
  return part;
}

Tensor whole_of(const Shard& shard, const Tensor& parts) {
  Tensor whole(parts.data_type(), shard.whole);
  copy_elements(parts, 0, whole.size(), whole);
  return whole;
}

}  // namespace tessera::nn
