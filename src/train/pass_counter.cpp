#include "train/pass_counter.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tessera::train {

PassCounter::PassCounter(Communicator* communicator, const EvaluationLimits& limits)
    : communicator_(communicator),
      limits_(limits),
      left_(limits.samples > 0 ? limits.samples : std::numeric_limits<int64_t>::max()) {}

data::Partition PassCounter::partition() const {
  if (communicator_ == nullptr) return {};
  return {.rank = communicator_->rank(), .ranks = communicator_->size()};
}

int64_t PassCounter::count(int64_t samples) {
  struct Part {
    int64_t samples;
    int64_t stops;
  };
  const Part own{samples, limits_.stop != nullptr && limits_.stop->load() ? 1 : 0};
  std::vector<Part> parts{own};
  int64_t before = 0;  // samples of the ranks before this one
  if (communicator_ != nullptr) {
    parts.resize(static_cast<size_t>(communicator_->size()));
    communicator_->all_gather(&own, parts.data(), sizeof(own));
    for (int64_t rank = 0; rank < communicator_->rank(); ++rank)
      before += parts[static_cast<size_t>(rank)].samples;
  }
  int64_t all = 0;
  for (const Part& part : parts) {
    all += part.samples;
    stopped_ |= part.stops != 0;
  }
  const int64_t counted = std::clamp<int64_t>(left_ - before, 0, samples);
  samples_ += std::min(all, left_);
  left_ -= all;
  return counted;
}

}  // namespace tessera::train
