#include "data/class_balance.h"

#include <map>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/data/order.h"

namespace tessera::data {

ClassBalance::ClassBalance(const Examples& examples) : buckets_(examples.buckets().size()) {
  std::map<int32_t, std::map<int64_t, std::vector<int64_t>>> classes;  // by class and bucket
  for (int64_t index = 0; index < examples.size(); ++index) {
    const int32_t own = examples.class_of(index);
    require(own >= 0, ErrorCode::invalid_argument,
            "batches that are balanced need a class of each example; number {} of {} has none", index,
            examples.size());
    classes[own][buckets_ == 1 ? 0 : examples.bucket_of(index)].push_back(index);
  }
  const auto count = std::ssize(classes);
  int64_t number = 0;
  for (auto& [own, buckets] : classes) {
    const int64_t share = examples.size() / count + (number++ < examples.size() % count ? 1 : 0);
    int64_t of_class = 0;
    for (const auto& [bucket, indices] : buckets) of_class += std::ssize(indices);
    // What the buckets up to one take is rounded down, so that all together take the share.
    int64_t before = 0;
    int64_t taken_before = 0;
    for (auto& [bucket, indices] : buckets) {
      before += std::ssize(indices);
      const int64_t taken = share * before / of_class;
      groups_.push_back({static_cast<size_t>(bucket), std::move(indices), taken - taken_before});
      taken_before = taken;
    }
  }
}

std::vector<int64_t> ClassBalance::counts() const {
  std::vector<int64_t> counts(buckets_);
  for (const Group& group : groups_) counts[group.bucket] += group.taken;
  return counts;
}

std::vector<int64_t> ClassBalance::order(uint64_t seed, int64_t epoch) const {
  const auto in_epoch = static_cast<uint64_t>(epoch);
  std::vector<int64_t> taken;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    // Other places than those of another group of as many examples.
    const uint64_t own_seed = seed ^ hash_name("balance", 7) ^ (i << 32U);
    const std::vector<int64_t> order = shuffled_order(std::ssize(group.examples), own_seed, in_epoch);
    for (int64_t k = 0; k < group.taken; ++k) {
      const int64_t place = order[static_cast<size_t>(k % std::ssize(order))];
      taken.push_back(group.examples[static_cast<size_t>(place)]);
    }
  }
  std::vector<int64_t> mixed;
  mixed.reserve(taken.size());
  for (const int64_t place : shuffled_order(std::ssize(taken), seed, in_epoch))
    mixed.push_back(taken[static_cast<size_t>(place)]);
  return mixed;
}

}  // namespace tessera::data
