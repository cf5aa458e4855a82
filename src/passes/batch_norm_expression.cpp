#include "tessera/passes/batch_norm_expression.h"

#include <algorithm>
#include <limits>

#include "tessera/passes/fuse.h"

namespace tessera {

ops::ReduceOptions over_all_but_channels(const Value* x) {
  ops::ReduceOptions over;
  for (int64_t axis = 0; axis + 1 < x->type().rank(); ++axis) over.axes.push_back(axis);
  return over;
}

int64_t rows_of_channels(const Value* x) {
  const Shape shape = x->type().static_shape();
  return element_count(Shape(shape.begin(), shape.end() - 1));
}

Value* variance_of_means(Value* mean_of_squares, Value* mean) {
  Value* spread = ops::subtract(mean_of_squares, ops::square(mean));
  return ops::maximum(spread, ops::constant_like(spread, 0));
}

// Sums of x - s and of its square, where s, the first row, lies near enough to the mean that nothing cancels.
// Without rows both statistics are NaN, as the operator's own.
BatchStatistics batch_statistics(Value* x, DataType type) {
  const int64_t channels = x->shape().back().value();
  if (x->type().element_count() == 0) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    Value* none = ops::constant(x->graph(), Tensor::full(type, {channels}, kNothing));
    return {none, none};
  }
  Value* rows = ops::reshape(x, {rows_of_channels(x), channels});
  Value* first = ops::reshape(ops::slice(rows, {0, 0}, {1, channels}), {channels});
  Value* shift = ops::cast(first, type);
  Value* shifted = ops::subtract(ops::cast(x, type), shift);
  Value* mean_shifted = ops::reduce_mean(shifted, over_all_but_channels(x));
  Value* mean_square = ops::reduce_mean(ops::square(shifted), over_all_but_channels(x));
  return {ops::add(mean_shifted, shift), variance_of_means(mean_square, mean_shifted)};
}

Value* normalize_channels(Value* x, Value* mean, Value* variance, Value* scale, Value* bias, double epsilon) {
  Value* factor = ops::multiply(ops::rsqrt(ops::add(variance, epsilon)), scale);
  const auto along = [&](Value* channels) { return ops::broadcast_to(channels, x->shape()); };
  Value* centered = ops::subtract(ops::cast(x, mean->data_type()), along(mean));
  return ops::cast(ops::add(ops::multiply(centered, along(factor)), along(bias)), x->data_type());
}

namespace {

// The node of that operator that makes an input of `reader`, which alone reads it; null when there is none,
// or no reader.
Node* before(const Node* reader, size_t input, std::string_view operator_name) {
  if (reader == nullptr || sole_reader(reader->input(input)) != reader) return nullptr;
  return producer_of(reader->input(input), operator_name);
}

}  // namespace

std::optional<NormalizedChannels> match_normalized_channels(Value* y) {
  const bool casts = y->data_type() != DataType::fp32;
  Node* narrow = casts ? producer_of(y, "cast") : nullptr;
  Node* sum = casts ? before(narrow, 0, "add") : producer_of(y, "add");
  Node* product = before(sum, 0, "multiply");
  Node* centered = before(product, 0, "subtract");
  Node* mean = before(centered, 1, "broadcast_to");
  Node* factor = before(product, 1, "broadcast_to");
  Node* bias = before(sum, 1, "broadcast_to");
  std::vector<Node*> nodes{sum, product, centered, mean, factor, bias};
  Node* wide = casts ? before(centered, 0, "cast") : centered;
  if (casts) nodes.insert(nodes.end(), {narrow, wide});
  if (std::find(nodes.begin(), nodes.end(), nullptr) != nodes.end() || wide->input(0)->type() != y->type())
    return std::nullopt;
  return NormalizedChannels{wide->input(0), mean->input(0), factor->input(0), bias->input(0), nodes};
}

std::optional<NormalizedInput> match_normalized_input(Value* y) {
  NormalizedInput match;
  Node* relu = producer_of(y, "relu");
  if (relu == nullptr || sole_reader(relu->input(0)) != relu) return std::nullopt;
  match.nodes.push_back(relu);
  std::vector<Value*> addends{relu->input(0)};
  Node* sum = producer_of(relu->input(0), "add");
  if (sum != nullptr &&
      !match_normalized_channels(relu->input(0)).has_value()) {  // which is a sum, too, in fp32
    match.nodes.push_back(sum);
    addends = {sum->input(0), sum->input(1)};
  }
  for (Value* addend : addends) {
    if (addend->type() != y->type()) return std::nullopt;
    std::optional<NormalizedChannels> norm =
        sole_reader(addend) == nullptr ? std::nullopt : match_normalized_channels(addend);
    if (norm.has_value()) {
      match.nodes.insert(match.nodes.end(), norm->nodes.begin(), norm->nodes.end());
      match.norms.push_back(*std::move(norm));
    } else if (match.residual == nullptr) {
      match.residual = addend;
    } else {
      return std::nullopt;
    }
  }
  if (match.norms.empty()) return std::nullopt;
  return match;
}

// With n the normalized x: dbias = sum dy, dscale = sum dy n, dx = scale / deviation (dy - mean(dy) - n
// mean(dy n)).
BatchNormGradients gradients_from_sums(const Node& gradient, Value* gradient_sums, Value* products) {
  Value *dy = gradient.input(0), *x = gradient.input(1), *mean = gradient.input(3);
  const double share = 1 / static_cast<double>(rows_of_channels(x));
  Value* inverse = ops::rsqrt(ops::add(gradient.input(4), gradient.attributes().real("epsilon")));
  BatchNormGradients result;
  result.dbias = gradient_sums;
  result.dscale = ops::multiply(products, inverse);
  result.factor = ops::multiply(gradient.input(2), inverse);
  result.correlation =
      ops::multiply(ops::multiply(result.factor, inverse), ops::multiply(result.dscale, -share));
  Value* level = ops::multiply(ops::multiply(result.factor, gradient_sums), -share);
  result.offset = ops::subtract(level, ops::multiply(result.correlation, mean));
  const auto along = [&](Value* channels) { return ops::broadcast_to(channels, x->shape()); };
  const auto wide = [&](Value* value) { return ops::cast(value, mean->data_type()); };
  Value* sum = ops::add(ops::multiply(wide(dy), along(result.factor)),
                        ops::multiply(wide(x), along(result.correlation)));
  result.dx = ops::cast(ops::add(sum, along(result.offset)), x->data_type());
  return result;
}

}  // namespace tessera
