// Parts of attention, for networks whose layers are not those of nn::self_attention().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/context.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

// Linear layers of the width of x, `name` and each of the parts being their names, in one product: x [N,
// tokens, width] -> of each part [N, heads, tokens, width / heads].
std::vector<Value*> projected_heads(Context& context, const std::string& name, Value* x, int64_t heads,
                                    const std::vector<std::string>& parts, const Initializer& weight,
                                    bool bias = true);

// [N, tokens, parts * heads * width], each token's parts one after another (queries, keys, values), into so
// many [N, heads, tokens, width].
std::vector<Value*> split_heads(Value* x, int64_t parts, int64_t heads);
// [N, heads, tokens, width] -> [N, tokens, heads * width].
ops::Expression join_heads(Value* x);

// Of ops::attention() y, of whose weights training zeroes each with that probability, and divides the rest by
// 1 - rate: q [N, heads, queries, width], k and v with as many heads or a divisor of them -> [N, heads,
// queries, value width].
ops::Expression dropout_attention(Context& context, Value* q, Value* k, Value* v, double rate,
                                  ops::AttentionOptions options = {});

// Each query attends to the keys of its own place and of those before it. q: [N, heads, tokens, width], k and
// v: [N, key heads, tokens, width], of which each serves as many neighboring heads (Ainslie et al. 2023,
// arXiv:2305.13245) -> [N, heads, tokens, width].
ops::Expression causal_attention(Value* q, Value* k, Value* v);

// The positions of Vaswani et al. 2017 as tensor2tensor and fairseq lay them out: places int32 [tokens] ->
// fp32 [tokens, width], the sines of place * 10000^(-i / (width / 2 - 1)) and then their cosines. Throws
// Error(invalid_argument) unless the width is an even number of at least 4.
ops::Expression sinusoidal_positions(Value* places, int64_t width);

// Keys and values of the tokens of one row of text, which come in several passes: what a pass computes of its
// tokens is kept on the device, and the next one attends to it.
class AttentionCache {
 public:
  // places: int32 [tokens], where in the text the tokens of this pass stand, from 0 and below `capacity`.
  // What has a negative place fills up: it is kept nowhere, and what is computed of it means nothing. A pass
  // may begin anywhere: what was kept of its first place and of those after it is forgotten.
  AttentionCache(Value* places, int64_t capacity);

  Value* places() const { return places_; }
  int64_t capacity() const { return capacity_; }
  // As causal_attention(), of N = 1, with the keys and values of all places so far. They are two states that
  // advance, "keys" and "values" in the present scope, of Context::kept_type() [key heads * capacity, width].
  ops::Expression attend(Context& context, Value* q, Value* k, Value* v) const;

 private:
  Value* keep(Context& context, const std::string& name, Value* x) const;

  Value* places_;
  int64_t capacity_;
  Value* key_lengths_;       // int32 [1], up to the last of this pass's places
  Value* hidden_ = nullptr;  // fp32 [1, 1, tokens, capacity], added to scores; null: a single token
};

// Keys and values of the tokens of several rows, of which every pass brings one more for each: what a search
// for the likeliest texts needs, whose rows go on from one another.
class RowsCache {
 public:
  // place: int32 [1], where in its row the token of this pass stands, below `capacity`. parents: int32
  // [rows], from which of the rows before this pass each goes on; what was kept of others is forgotten.
  RowsCache(Value* place, Value* parents, int64_t capacity);

  Value* place() const { return place_; }
  // q, k, v: [rows, heads, 1, width] -> the same, each query attending to its row so far and itself. Keys and
  // values are two states that advance, "keys" and "values" in the present scope, of Context::kept_type()
  // [rows, heads, capacity, width].
  ops::Expression attend(Context& context, Value* q, Value* k, Value* v) const;

 private:
  Value* keep(Context& context, const std::string& name, Value* x) const;

  Value* place_;
  Value* parents_;
  int64_t capacity_;
  Value* key_lengths_;  // int32 [rows], up to this pass's place
  Value* here_;         // [1, 1, capacity, 1], true at the place
};

// By how much rotary positions (Su et al. 2021, arXiv:2104.09864) rotate: fp32 [tokens, width / 2] each.
struct RotaryAngles {
  Value* cosines;
  Value* sines;
};
// For longer rows than a network was first trained on, as in Llama 3.1: pairs that turn around fewer than
// `low` times in `positions` places rotate by a factor less, those that do so more than `high` times as
// before, and those between by something between.
struct RotaryScaling {
  double factor = 8;
  double low = 1;
  double high = 4;
  int64_t positions = 8192;
  bool operator==(const RotaryScaling&) const = default;
};
// places: int32 [tokens]. Pair i of a head's numbers rotates by place * base^(-2i / width), unless scaled.
RotaryAngles rotary_angles(Value* places, int64_t width, double base,
                           const std::optional<RotaryScaling>& scaling = {});
// x: [N, tokens, heads, width], an even width, whose number i is paired with number width / 2 + i.
ops::Expression rotate(Value* x, const RotaryAngles& angles);

}  // namespace tessera::nn
