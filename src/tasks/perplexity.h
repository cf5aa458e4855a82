// How well a network foretells text, of every token that it was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tessera/train/evaluator.h"

namespace tessera::tasks {

// What tokens stand for, which counts the characters of bits_per_character: those of UTF-8, or of other bytes
// each that does not go on with a character. Empty: that result is left out.
using TokensText = std::function<std::string(std::span<const int32_t> tokens)>;

// Of outputs "nats" [batch], the losses of a row added up, and a field "labels" int32 [batch, tokens] whose
// negative ones do not count:
//   perplexity:          e to the power of the mean loss, by tokens
//   bits_per_token:      the mean loss to the base 2
//   bits_per_character:  the same sum by characters of the text
// 0 where nothing was counted.
train::EvaluatorMaker perplexity_evaluator(TokensText text);

}  // namespace tessera::tasks
