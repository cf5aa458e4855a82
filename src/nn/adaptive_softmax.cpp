#include "tessera/nn/adaptive_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"

namespace tessera::nn {
namespace {

constexpr double kIgnored = -100;     // ops::CrossEntropyOptions::ignored_label
constexpr int64_t kRowsTogether = 8;  // of a product on Tensor Cores

// The tokens of the head, or of a cluster.
struct Part {
  int64_t first = 0;
  int64_t tokens = 0;
  int64_t width = 0;

  // Booleans of the tokens' shape.
  Value* holds(Value* tokens_of_all) const {
    const auto number = [&](int64_t value) {
      return ops::constant_like(tokens_of_all, static_cast<double>(value));
    };
    return ops::logical_and(ops::greater_equal(tokens_of_all, number(first)),
                            ops::less(tokens_of_all, number(first + tokens)));
  }
  Value* from_first(Value* tokens_of_all) const {
    return ops::add(tokens_of_all, static_cast<double>(-first));
  }
};

std::vector<Part> parts_of(const AdaptiveVocabulary& vocabulary, int64_t width) {
  std::vector<Part> parts{{.first = 0, .width = width}};
  for (const int64_t cutoff : vocabulary.cutoffs) {
    parts.back().tokens = cutoff - parts.back().first;
    parts.push_back({.first = cutoff, .width = parts.back().width / vocabulary.narrowing});
  }
  parts.back().tokens = vocabulary.tokens - parts.back().first;
  return parts;
}

Value* logits_of(Value* x, Value* weight, Value* bias) {
  Value* logits = ops::matmul(x, weight, {.transpose_b = true});
  return bias == nullptr ? logits : ops::add(logits, bias);
}

Value* logits_of(const AdaptiveWeights::Tail& tail, Value* x) {
  Value* narrow = tail.projection == nullptr ? x : ops::matmul(x, tail.projection, {.transpose_b = true});
  return logits_of(narrow, tail.table, tail.bias);
}

void check_bounds(const std::vector<int64_t>& most_labels, int64_t clusters) {
  if (most_labels.empty()) return;
  require(std::ssize(most_labels) == clusters, ErrorCode::invalid_argument,
          "{} bounds of the labels of {} clusters", most_labels.size(), clusters);
  for (const int64_t most : most_labels)
    require(most >= 0, ErrorCode::invalid_argument, "a cluster has at most {} labels", most);
}

// For how many of the rows a cluster is computed, where it is not all of them. To pick them costs passes over
// all rows, which does not pay where they are most of these.
std::optional<int64_t> picked_count(int64_t most_labels, int64_t rows) {
  const int64_t count = round_up(std::max<int64_t>(most_labels, 1), kRowsTogether);
  if (4 * count > 3 * rows) return std::nullopt;
  return count;
}

// The rows whose labels are a cluster's, one after another.
struct PickedRows {
  int64_t count = 0;
  Value* slots = nullptr;   // int32 [rows]: where among them a row stands; -1: nowhere
  Value* beyond = nullptr;  // boolean [rows]: its label is the cluster's, and all slots are taken
};

PickedRows pick_rows(Value* holds, int64_t count) {
  Value* before = ops::cumulative_sum(ops::cast(holds, DataType::int32), {.axis = 0, .exclusive = true});
  Value* fits = ops::less(before, ops::constant_like(before, static_cast<double>(count)));
  return {.count = count,
          .slots = ops::select(ops::logical_and(holds, fits), before, ops::constant_like(before, -1)),
          .beyond = ops::logical_and(holds, ops::logical_not(fits))};
}

// Of all rows, 0 of those that are not picked. A slot that no row took holds the row of its own number, whose
// label is ignored there.
Value* losses_of_picked(const PickedRows& picked, const AdaptiveWeights::Tail& tail, Value* x,
                        Value* labels) {
  const auto numbers = [&](const Dimension& count) {
    return ops::iota(x->graph(), {count}, 0, DataType::int32);
  };
  const Dimension& rows = x->shape().front();
  Value* places = ops::set_rows(numbers(picked.count), picked.slots, numbers(rows));
  Value* ignored = ops::broadcast_to(ops::constant_like(labels, kIgnored), {picked.count});
  Value* own_labels = ops::set_rows(ignored, picked.slots, labels);
  Value* losses = ops::cross_entropy(logits_of(tail, ops::gather(x, places)), own_labels);
  return ops::scatter_add(places, losses, rows);
}

// NaN where a cluster had no slot left for a row.
Value* refuse_beyond(const std::vector<Value*>& beyond, Value* losses) {
  Value* any = beyond.front();
  for (size_t i = 1; i < beyond.size(); ++i) any = ops::logical_or(any, beyond[i]);
  Value* none = ops::constant_like(losses, std::numeric_limits<double>::quiet_NaN());
  return losses->graph().add_node("select", {any, none, losses}, {}, kLabelBeyondMost)->output();
}

}  // namespace

void check_adaptive(const AdaptiveVocabulary& vocabulary, int64_t width) {
  const auto code = ErrorCode::invalid_argument;
  require(vocabulary.narrowing > 0, code, "clusters that are narrower by {}", vocabulary.narrowing);
  for (const Part& part : parts_of(vocabulary, width)) {
    require(part.tokens > 0, code, "cutoffs rise within the {} tokens of a vocabulary; at {} they do not",
            vocabulary.tokens, part.first);
    require(part.width > 0, code, "the tokens from {} on have no width left of {}, divided by {} each time",
            part.first, width, vocabulary.narrowing);
  }
}

AdaptiveWeights adaptive_weights(Context& context, const AdaptiveVocabulary& vocabulary, int64_t width,
                                 bool head_bias) {
  check_adaptive(vocabulary, width);
  const std::vector<Part> parts = parts_of(vocabulary, width);
  const int64_t rows = parts.front().tokens + std::ssize(vocabulary.cutoffs);
  AdaptiveWeights weights{.head = context.parameter("head.weight", {rows, width}, fan_in_uniform())};
  if (head_bias) {
    const Initializer start = fan_in_uniform(static_cast<double>(width));
    weights.head_bias = context.parameter("head.bias", {rows}, start, false);
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto named = [&](int layer, const Shape& shape) {
      return context.parameter(fmt::format("tail.{}.{}.weight", i - 1, layer), shape, fan_in_uniform());
    };
    weights.tails.push_back({.projection = named(0, {parts[i].width, width}),
                             .table = named(1, {parts[i].tokens, parts[i].width})});
  }
  return weights;
}

AdaptiveTables::AdaptiveTables(Context& context, const std::string& name,
                               const AdaptiveVocabulary& vocabulary, int64_t width, double deviation)
    : vocabulary_(vocabulary), width_(width), deviation_(deviation) {
  check_adaptive(vocabulary, width);
  size_t number = 0;
  for (const Part& part : parts_of(vocabulary, width)) {
    tables_.push_back(context.parameter(fmt::format("{}.emb_layers.{}.weight", name, number),
                                        {part.tokens, part.width}, normal(deviation)));
    projections_.push_back(part.width == width
                               ? nullptr
                               : context.parameter(fmt::format("{}.emb_projs.{}", name, number),
                                                   {part.width, width}, normal(deviation)));
    ++number;
  }
}

// Of each part all tokens are looked up, those of other parts as one of its own.
ops::Expression AdaptiveTables::embedded(Value* tokens) const {
  const std::vector<Part> parts = parts_of(vocabulary_, width_);
  if (parts.size() == 1) return ops::gather(tables_.front(), tokens);
  SymbolicShape with_width = tokens->shape();
  with_width.emplace_back(1);
  Value* result = nullptr;
  for (size_t i = 0; i < parts.size(); ++i) {
    Value* own = ops::clip(parts[i].from_first(tokens), 0, static_cast<double>(parts[i].tokens - 1));
    Value* rows = ops::gather(tables_[i], own);
    if (projections_[i] != nullptr) rows = ops::matmul(rows, projections_[i]);
    result = result == nullptr ? rows
                               : ops::select(ops::reshape(parts[i].holds(tokens), with_width), rows, result);
  }
  return result;
}

AdaptiveWeights AdaptiveTables::weights(Context& context, const std::string& name) const {
  const std::vector<Part> parts = parts_of(vocabulary_, width_);
  const auto bias = [&](size_t part) {
    return context.parameter(fmt::format("{}.out_layers.{}.bias", name, part), {parts[part].tokens}, zeros(),
                             false);
  };
  AdaptiveWeights weights{.head = tables_.front(), .head_bias = bias(0)};
  if (const auto clusters = std::ssize(vocabulary_.cutoffs); clusters > 0) {
    weights.head = ops::concat(
        {weights.head, context.parameter(name + ".cluster_weight", {clusters, width_}, normal(deviation_))},
        0);
    weights.head_bias = ops::concat(
        {weights.head_bias, context.parameter(name + ".cluster_bias", {clusters}, zeros(), false)}, 0);
  }
  for (size_t i = 1; i < parts.size(); ++i)
    weights.tails.push_back({.projection = projections_[i], .table = tables_[i], .bias = bias(i)});
  return weights;
}

ops::Expression adaptive_losses(const AdaptiveVocabulary& vocabulary, const AdaptiveWeights& weights,
                                Value* x, Value* labels, const std::vector<int64_t>& most_labels) {
  const std::vector<Part> parts = parts_of(vocabulary, x->shape().back().value());
  check_bounds(most_labels, std::ssize(parts) - 1);
  Value* of_head = labels;
  std::vector<Value*> losses;  // of the clusters
  std::vector<Value*> beyond;
  for (size_t i = 1; i < parts.size(); ++i) {
    Value* holds = parts[i].holds(labels);
    const auto of_cluster = static_cast<double>(parts.front().tokens) + static_cast<double>(i - 1);
    of_head = ops::select(holds, ops::constant_like(labels, of_cluster), of_head);
    Value* own = ops::select(holds, parts[i].from_first(labels), ops::constant_like(labels, kIgnored));
    const AdaptiveWeights::Tail& tail = weights.tails[i - 1];
    const std::optional<int64_t> count =
        most_labels.empty() ? std::nullopt
                            : picked_count(most_labels[i - 1], labels->shape().front().value());
    if (count.has_value()) {
      const PickedRows picked = pick_rows(holds, *count);
      losses.push_back(losses_of_picked(picked, tail, x, own));
      beyond.push_back(picked.beyond);
    } else {
      losses.push_back(ops::cross_entropy(logits_of(tail, x), own));
    }
  }
  Value* sum = ops::cross_entropy(logits_of(x, weights.head, weights.head_bias), of_head);
  for (Value* loss : losses) sum = ops::add(sum, loss);
  return beyond.empty() ? sum : refuse_beyond(beyond, sum);
}

ops::Expression adaptive_log_probabilities(const AdaptiveVocabulary& vocabulary,
                                           const AdaptiveWeights& weights, Value* x) {
  Value* head = ops::log_softmax(logits_of(x, weights.head, weights.head_bias));
  if (vocabulary.cutoffs.empty()) return head;
  const std::vector<Part> parts = parts_of(vocabulary, x->shape().back().value());
  std::vector<int64_t> sizes{parts.front().tokens};
  sizes.resize(parts.size(), 1);
  std::vector<Value*> all = ops::split(head, sizes, 1);
  for (size_t i = 1; i < parts.size(); ++i)
    all[i] = ops::add(all[i], ops::log_softmax(logits_of(weights.tails[i - 1], x)));
  return ops::concat(all, 1);
}

}  // namespace tessera::nn
