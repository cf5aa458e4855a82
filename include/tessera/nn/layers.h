// Layers: functions that ask the context for their variables and append their operators. `name` is the
// layer's name in files, such as "layer1.0.conv1"; activations are channels-last. They return expressions,
// which are values that + - * / apply to: x + nn::dropout(context, y, 0.1).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/context.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

struct LinearOptions {
  bool bias = true;
  // The input is a flattened [height, width, channels] of this shape; files store it as channels, height,
  // width.
  Shape flattened_from;
  // Files store it as [features, outputs]; not with flattened_from.
  bool transposed_in_files = false;
  Initializer weight = fan_in_uniform();
  std::optional<Initializer> bias_start = {};  // none: uniform as torch's, by the number of inputs
};
// [..., features] -> [..., outputs]; weight [outputs, features].
ops::Expression linear(Context& context, const std::string& name, Value* x, int64_t outputs,
                       const LinearOptions& options = {});

struct ConvolutionLayerOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Initializer weight = fan_in_uniform();
};
// [N, spatial..., C] -> [N, spatial..., outputs] with a cubic kernel; weight [outputs, kernel..., C/groups].
ops::Expression convolution(Context& context, const std::string& name, Value* x, int64_t outputs,
                            int64_t kernel, const ConvolutionLayerOptions& options = {});

struct TransposedConvolutionOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t output_padding = 0;  // rows added at the end of each axis
  bool bias = true;
  Initializer weight = fan_in_uniform();
};
// [N, spatial..., C] -> [N, (spatial - 1) * stride + kernel + output_padding - 2 * padding..., outputs];
// weight [C, kernel..., outputs]; torch's ConvTranspose in files.
ops::Expression transposed_convolution(Context& context, const std::string& name, Value* x, int64_t outputs,
                                       int64_t kernel, const TransposedConvolutionOptions& options = {});

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the new batch in the running statistics
  Initializer scale = ones();
};
// With its running statistics in inference, and where they are frozen.
ops::Expression batch_norm(Context& context, const std::string& name, Value* x,
                           const BatchNormOptions& options = {});

// The same of variables that the caller asked for, all [channels]; `name` is the node's.
struct BatchNormVariables {
  Value* scale;
  Value* bias;
  Value* mean;  // as Context::state() gave them
  Value* variance;
  bool frozen = false;
};
ops::Expression normalize_batch(Context& context, const std::string& name, Value* x,
                                const BatchNormVariables& variables, const BatchNormOptions& options = {});

ops::Expression layer_norm(Context& context, const std::string& name, Value* x, double epsilon = 1e-5);
// x / sqrt(mean of x² + epsilon), times a weight, along the last axis (Zhang and Sennrich 2019,
// arXiv:1910.07467).
ops::Expression rms_norm(Context& context, const std::string& name, Value* x, double epsilon = 1e-5);
ops::Expression group_norm(Context& context, const std::string& name, Value* x, int64_t groups,
                           double epsilon = 1e-5);
ops::Expression instance_norm(Context& context, const std::string& name, Value* x, double epsilon = 1e-5);

struct EmbeddingOptions {
  bool updates_rows = false;  // training changes the rows that a batch reads, as torch's sparse embeddings
  Initializer weight = normal(1);
};
// indices [...] -> [..., width]; weight [entries, width].
ops::Expression embedding(Context& context, const std::string& name, Value* indices, int64_t entries,
                          int64_t width, const EmbeddingOptions& options = {});

class TokenList;

// What the linear layers of an attention are called below its own name.
struct AttentionNames {
  std::string query;
  std::string key;
  std::string value;
  std::string output;
};
// [N, tokens, width] -> [N, tokens, width], each token attending to all, or with `causal` to those up to
// itself, in `heads` parts of the width (Vaswani et al. 2017); torch's MultiheadAttention in files, or with
// `names` four linear layers. Queries, keys and values are one product in either case.
struct SelfAttentionOptions {
  bool causal = false;
  bool bias = true;
  Value* scores = nullptr;  // added to the scores of queries and keys: [N or 1, heads or 1, tokens, tokens]
  Value* key_lengths = nullptr;  // of each row the tokens that are attended to, the first ones: key_lengths()
  double dropout = 0;            // probability with which training zeroes the weights of queries and keys
  std::optional<AttentionNames> names = {};
  std::optional<Initializer> weight = {};  // none: as torch starts each
  // x is the list of N texts, [1, its size, width], each of which attends to itself; null: x are rows.
  const TokenList* list = nullptr;
};
ops::Expression self_attention(Context& context, const std::string& name, Value* x, int64_t heads,
                               const SelfAttentionOptions& options = {});
// How many keys of each row attention sees, where the first lengths[n] of so many tokens count: int32 [N]. An
// empty row sees its first token, so that what is computed of it stays finite, and none sees more than it
// has.
ops::Expression key_lengths(Value* lengths, const Dimension& tokens);
// What, added to an attention's scores, hides texts from each other that share a row. texts: int32 [N,
// tokens], the number of each token's text; fp32 [N, 1, tokens, tokens].
ops::Expression hidden_texts(Value* texts);
// [N, tokens], int32: 1 at the first lengths[n] tokens of a row, 0 after them. lengths: int32 [N].
ops::Expression within_lengths(Value* lengths, const Dimension& tokens);

// The identity in inference and at rate 0.
ops::Expression dropout(Context& context, Value* x, double rate);

// [N, ...] -> [N, product].
ops::Expression flatten(Value* x);

// torchvision's adaptive average pooling for extents that are a multiple or a divisor of the wanted size.
ops::Expression adaptive_average_pool(Value* x, int64_t size);

}  // namespace tessera::nn
