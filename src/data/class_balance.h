// Which examples an epoch takes, and in which order, where it takes those of each class equally often.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/data/examples.h"

namespace tessera::data {

// An epoch is as long as there are examples. Each class has the same share of it, and each bucket of a class
// the share that it has of the class's examples; they are taken once more, or fewer, in every epoch.
class ClassBalance {
 public:
  // Throws Error(invalid_argument) naming an example that is of no class.
  explicit ClassBalance(const Examples& examples);

  // How many examples an epoch takes of each bucket: as many in every epoch.
  std::vector<int64_t> counts() const;
  // All that it takes, in a random order that follows from the arguments.
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const;

 private:
  // Examples of one class and bucket.
  struct Group {
    size_t bucket = 0;
    std::vector<int64_t> examples;
    int64_t taken = 0;  // in an epoch
  };
  size_t buckets_ = 0;
  std::vector<Group> groups_;
};

}  // namespace tessera::data
