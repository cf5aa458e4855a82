// Rows of tensors in memory as a source: what is small enough to be held whole.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/data/examples.h"

namespace tessera::data {

// Rows that are trained on and rows that are not, the latter spread evenly: `share` of all, above 0 and
// below 1. Throws Error(invalid_argument) where either would have none.
struct HeldOut {
  Feeds training;
  Feeds test;
};
HeldOut hold_out(const Feeds& tensors, double share);

// Each tensor's first axis counts the examples; a batch holds some of them, by a field of the tensor's name.
// With several ranks a batch of each is a part of one that is as many times larger.
class Rows : public ExampleBatches {
 public:
  // Throws Error(invalid_argument) when the counts differ, an option is out of range, or there is not one
  // batch.
  Rows(Feeds tensors, const BatchOptions& options);

  int64_t size() const { return examples().size(); }
  const Feeds& tensors() const;
};

}  // namespace tessera::data
