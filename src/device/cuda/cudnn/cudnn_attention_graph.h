// Attention and its gradient as graphs of cuDNN's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/base/data_type.h"
#include "tessera/base/shape.h"

#include "device/cuda/cudnn/cudnn_graph.h"

namespace tessera::cuda {

// Numbers for PlanOperands. Gradients are of what has their name. The lengths of queries are those that cuDNN
// wants beside the lengths of keys; a plan has them by itself.
enum class AttentionOperand : int64_t {
  q = 1,
  k,
  v,
  bias,
  y,
  log_sum,
  dy,
  dq,
  dk,
  dv,
  dbias,
  counter,
  key_lengths,
  query_lengths
};

// q [batch, heads, queries, width], k [batch, key_heads, keys, width], v [batch, key_heads, keys,
// value_width].
struct AttentionProblem {
  bool gradient = false;
  DataType type = DataType::fp16;
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;  // of each neighboring heads of queries share one
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t width = 1;
  int64_t value_width = 1;
  double scale = 1;
  bool causal = false;
  // Added to the scores, in the type of the operands: [batch, heads, queries, keys], where each of the first
  // two may be 1.
  struct Bias {
    int64_t batch = 1;
    int64_t heads = 1;
  };
  std::optional<Bias> bias;
  bool key_lengths = false;  // int32 [batch]: so many keys are seen, the first ones
  // Of the weights, by random numbers that cuDNN does not have: it takes none.
  struct Dropout {
    double rate = 0;
    int64_t stream = 0;
  };
  std::optional<Dropout> dropout;
  bool bias_gradient = false;  // the gradient makes that of the bias too
  bool deterministic = true;
  // Of operands of four axes that lie in another order than row-major, in elements.
  std::map<AttentionOperand, Shape> strides;

  int64_t heads_per_key_head() const { return heads / key_heads; }
  std::string key() const;
  PlanProblem plan_problem() const;
};

}  // namespace tessera::cuda
