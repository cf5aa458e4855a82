// The likeliest texts that a network goes on with, several of which are followed at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/base/tensor.h"

namespace tessera::train {

struct BeamOptions {
  int64_t beams = 4;          // texts that are followed at once; 1: always the likeliest token
  double length_penalty = 1;  // scores are divided by the length to this power: above 1 favors long texts
  int64_t longest = 0;        // tokens of a text, the one that ends it included
  int32_t begin = 0;          // what each goes on from
  int32_t end = 0;
};

struct FoundText {
  std::vector<int32_t> tokens;  // without the one that ends it
  double score = 0;             // the sum of the logarithms of all tokens' probabilities, over the penalty
};

// Of rows of text, what may come next.
struct NextTokens {
  Tensor tokens;         // int32 [rows, k], the likeliest k first: all there are, or twice as many as beams
  Tensor log_shares;     // fp32 [rows, k], logarithms of their probabilities
  Tensor end_log_share;  // fp32 [rows], of the token that ends a text
};
// Row r takes the token tokens[r] at that place, after those of what was row parents[r] until then. A row in
// which nothing is followed any more has any token.
using NextStep = std::function<NextTokens(std::span<const int32_t> tokens, std::span<const int32_t> parents,
                                          int64_t place)>;

// For each of so many searches, which have `beams` rows each one after another, what was found, the best
// first: as fairseq's sequence generator, of the 2 * beams best continuations those among the first `beams`
// that end are found, the best `beams` others are followed, and a search ends with `beams` of them, or with
// texts of the longest length, which end there. Throws Error(invalid_argument) for an option out of range,
// Error(not_finite) where a probability is not a number.
std::vector<std::vector<FoundText>> beam_search(int64_t searches, const BeamOptions& options,
                                                const NextStep& next);

}  // namespace tessera::train
