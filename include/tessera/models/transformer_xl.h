// Transformer-XL (Dai et al. 2019, arXiv:1901.02860): a network that goes on with text and reads it segment
// by segment. Each layer attends to what it was given of the segments before, and knows of positions only how
// far they are apart.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/nn/adaptive_softmax.h"
#include "tessera/nn/segment_memory.h"

namespace tessera::models {

// The defaults are the paper's network of 41 million numbers for the bytes of enwik8.
struct TransformerXlConfig {
  nn::AdaptiveVocabulary vocabulary = {.tokens = 204};
  int64_t width = 512;  // even, a multiple of the heads
  int64_t layers = 12;
  int64_t heads = 8;
  int64_t inner = 2048;     // width between the two linear layers of each layer
  double dropout = 0.1;     // of the embeddings, of what each part of a layer adds, and of the end
  int64_t farthest = 0;     // keys that are farther away are as far as that; 0: none is
  double epsilon = 1e-5;    // of the layer norms
  double deviation = 0.02;  // of the weights at the start
  bool operator==(const TransformerXlConfig&) const = default;
};
// The paper's standard network for the words of WikiText-103, of 151 million numbers.
TransformerXlConfig transformer_xl_base();

// What the network says of each token: int32 [N, tokens] -> [N, tokens, width], tokens being static. With a
// memory of that segment it is read after those before it, and what the next one attends to is kept; without
// one nothing stands before it. Throws Error(invalid_argument) where the heads do not divide the width.
Value* transformer_xl(nn::Context& context, const TransformerXlConfig& config, Value* tokens,
                      const nn::SegmentMemory* memory = nullptr);
// Losses of what came after each token, in nats: [N, tokens, width], labels int32 [N, tokens] -> fp32 [N,
// tokens]; 0 where a label is -100. `most_labels`: as of nn::adaptive_losses(), of all N rows.
Value* transformer_xl_losses(nn::Context& context, const TransformerXlConfig& config, Value* decoded,
                             Value* labels, const std::vector<int64_t>& most_labels = {});
// Logarithms of the probabilities of the token after each: [..., width] -> [..., vocabulary].
Value* transformer_xl_logits(nn::Context& context, const TransformerXlConfig& config, Value* decoded);

// All of its parameters.
std::vector<nn::Variable> transformer_xl_variables(const TransformerXlConfig& config);

}  // namespace tessera::models
