// Going on with text: tokens drawn from what a network says comes next.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/compile/executable.h"

namespace tessera::train {

// Of which tokens one is drawn, and how. In this order: the top_k likeliest, of those the likeliest whose
// probabilities add up to top_p.
struct Sampling {
  double temperature = 1;  // logits are divided by it; 0: the likeliest token, always
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // above 0, at most 1
  uint64_t seed = 1;
};
// Of logits of one place. The same one for the same logits, seed and step. Throws Error(invalid_argument) for
// a sampling out of range or no logits, Error(not_finite) where a logit is NaN or all are minus infinity.
int64_t draw_token(std::span<const float> logits, const Sampling& sampling, int64_t step);

// What text is to a network that serves "logits" [batch, tokens, vocabulary] of "tokens" [batch, tokens], at
// each place for the token after it.
struct TextContinuation {
  int64_t row = 0;  // tokens of a row that the network is given; after the last it has never foretold one
  std::vector<int32_t> start;  // what a text without a prompt goes on from; empty: it needs one
  std::function<std::vector<int32_t>(std::string_view text)> tokens;
  std::function<std::string(std::span<const int32_t> tokens)> text;
};

struct GenerationOptions {
  int64_t tokens = 200;  // at most so many
  Sampling sampling = {};
  std::vector<std::string> stops = {};  // the text ends before the first of them
};
// `network`: of one row (Trainer::served()). Gives `receive` the text after the prompt, piece by piece; it
// returns false to have no more. Each token costs a run over a whole row. Returns how many tokens were drawn.
// Throws as draw_token(), and Error(invalid_argument) where there is nothing to go on from.
int64_t continue_text(Executable& network, const TextContinuation& continuation, std::string_view prompt,
                      const GenerationOptions& options,
                      const std::function<bool(std::string_view piece)>& receive);

}  // namespace tessera::train
