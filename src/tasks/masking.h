// What is hidden from a language model, on the device: by random operators of (seed, step).
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::tasks {

// The random numbers of one network, one after another.
class MaskingDraws {
 public:
  // In an evaluation the same ones every time.
  explicit MaskingDraws(nn::Context& context);

  // fp32 in [0, 1), of a shape whose first axis are the rows of a batch.
  Value* uniform(const SymbolicShape& shape) const;

 private:
  nn::Context& context_;
  Value* counter_;
};

// A boolean that is true so often.
Value* happens(Value* draw, double probability);
// Whether a token is none of those.
Value* is_none_of(Value* tokens, const std::vector<int64_t>& kept);
// What stands where `labels` are to be filled in: of 10 places 8 hold the mask, 1 any token of the
// vocabulary, 1 what was there (Devlin et al. 2019).
Value* gaps_for(const MaskingDraws& draws, Value* labels, int64_t mask, int64_t vocabulary);

}  // namespace tessera::tasks
