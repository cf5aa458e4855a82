// The tokens with the highest logits, without putting a vocabulary in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::train {

struct RankedToken {
  float logit;
  int64_t token;
};

class LikeliestTokens {
 public:
  // Goes over the logits once, and looks at them again when it is asked. Throws Error(not_finite) where one
  // is NaN or all are minus infinity.
  explicit LikeliestTokens(std::span<const float> logits);

  float highest() const { return highest_; }
  // Of equal ones the first is the likelier.
  int64_t likeliest() const;
  // So many, or all, from the likeliest on.
  std::vector<RankedToken> first(size_t count) const;
  // Likewise all of at least that logit, and perhaps some below it by a rounding.
  std::vector<RankedToken> at_least(double logit) const;

 private:
  std::span<const float> row_from(size_t begin) const;  // as many as there are lanes
  std::vector<RankedToken> collect(float least) const;  // in their own order

  std::span<const float> logits_;
  std::vector<float> lanes_;  // the highest of each, which are the logits so many places apart
  float highest_;
};

}  // namespace tessera::train
