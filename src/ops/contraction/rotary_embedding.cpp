#include "tessera/ops/rotary_embedding.h"

#include <utility>

#include "tessera/ops/functions.h"

#include "ops/axes.h"
#include "ops/normalization/normalization.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_rotary_embedding(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const TensorType& cosines = call.input(1);
  const int64_t axis = normalized_axis(call.attributes.integer("axis"), x.rank());
  call.require(axis < x.rank() - 1, "axis must be one before the last of x, whose numbers go in pairs");
  const Dimension& width = x.shape.back();
  call.require(width.is_static() && width.value() > 0 && width.value() % 2 == 0,
               "the last axis of x must have an even number of elements, got " + width.to_string());
  SymbolicShape wanted{x.shape[static_cast<size_t>(axis)], width.value() / 2};
  const bool for_each = cosines.rank() == 3 && axis > 0;
  if (for_each) wanted.insert(wanted.begin(), x.shape[0]);
  call.require(cosines.shape == wanted,
               "cosines must be " + to_string(wanted) + ", got " + to_string(cosines.shape));
  call.require(call.input(2).shape == cosines.shape, "sines must be as cosines");
  const DataType type = statistics_type(x.data_type);
  call.require(cosines.data_type == type, "beside an x of " + std::string(to_string(x.data_type)) +
                                              " cosines and sines must be " + std::string(to_string(type)));
  return {x};
}

// The two numbers of all pairs, [..., width / 2] each, or their gradients.
struct Pairs {
  Value* first;
  Value* second;
};

Pairs pairs_of(Value* x, const Attributes& attributes) {
  SymbolicShape shape = x->shape();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const int64_t half = shape.back().value() / 2;
  Pairs pairs{};
  if (attributes.boolean("interleaved")) {
    shape.back() = half;
    SymbolicShape columns = shape;
    columns.emplace_back(2);
    const std::vector<Value*> parts = split(reshape(x, columns), {1, 1}, last + 1);
    pairs = {reshape(parts[0], shape), reshape(parts[1], shape)};
  } else {
    const std::vector<Value*> parts = split(x, {half, half}, last);
    pairs = {parts[0], parts[1]};
  }
  if (attributes.boolean("inverse")) std::swap(pairs.first, pairs.second);
  return pairs;
}

Value* joined(Pairs pairs, const Attributes& attributes) {
  if (attributes.boolean("inverse")) std::swap(pairs.first, pairs.second);
  SymbolicShape shape = pairs.first->shape();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  if (!attributes.boolean("interleaved")) return concat({pairs.first, pairs.second}, last);
  SymbolicShape column = shape;
  column.emplace_back(1);
  shape.back() = 2 * shape.back().value();
  return reshape(concat({reshape(pairs.first, column), reshape(pairs.second, column)}, last + 1), shape);
}

// As they broadcast against the numbers of pairs.
Value* beside_pairs(Value* angles, const SymbolicShape& x, const Attributes& attributes) {
  SymbolicShape shape(x.size(), 1);
  const int64_t axis = normalized_axis(attributes.integer("axis"), static_cast<int64_t>(x.size()));
  if (angles->shape().size() == 3) shape[0] = x[0];
  shape[static_cast<size_t>(axis)] = x[static_cast<size_t>(axis)];
  shape.back() = angles->shape().back();
  return reshape(angles, std::move(shape));
}

std::vector<Value*> decompose_rotary_embedding(const Node& node, std::span<Value* const> inputs) {
  const Attributes& attributes = node.attributes();
  Value* x = inputs[0];
  Value* cosines = beside_pairs(inputs[1], x->shape(), attributes);
  Value* sines = beside_pairs(inputs[2], x->shape(), attributes);
  const Pairs of = pairs_of(cast(x, cosines->data_type()), attributes);
  const Pairs rotated{subtract(multiply(of.first, cosines), multiply(of.second, sines)),
                      add(multiply(of.second, cosines), multiply(of.first, sines))};
  return {cast(joined(rotated, attributes), x->data_type())};
}

// Against the order of pairs to rotate back is to rotate.
std::vector<Value*> gradient_rotary_embedding(const GradientCall& call) {
  const Attributes& attributes = call.node.attributes();
  Value* x = call.input(0);
  Value* cosines = call.input(1);
  const DataType type = cosines->data_type();
  const Pairs of = pairs_of(cast(x, type), attributes);
  const Pairs gradients = pairs_of(cast(call.gradient(), type), attributes);
  const SymbolicShape broadcast = beside_pairs(cosines, x->shape(), attributes)->shape();
  const auto summed = [&](Value* products) {
    return reshape(reduce_to_shape(products, broadcast), cosines->shape());
  };
  return {rotary_embedding(call.gradient(), cosines, call.input(2),
                           {.axis = attributes.integer("axis"),
                            .interleaved = attributes.boolean("interleaved"),
                            .inverse = !attributes.boolean("inverse")}),
          summed(add(multiply(gradients.first, of.first), multiply(gradients.second, of.second))),
          summed(subtract(multiply(gradients.second, of.first), multiply(gradients.first, of.second)))};
}

void reference_rotary_embedding(const ReferenceCall& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& cosines = *call.inputs[1];
  const Tensor& sines = *call.inputs[2];
  const Shape& shape = x.shape();
  if (x.size() == 0) return;
  const auto axis = static_cast<size_t>(
      normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(shape.size())));
  const int64_t half = shape.back() / 2, tokens = shape[axis];
  const int64_t rows_of_token =
      element_count(Shape(shape.begin() + static_cast<int64_t>(axis) + 1, shape.end() - 1));
  const int64_t rows = x.size() / shape.back();
  const int64_t rows_of_batch = cosines.shape().size() == 3 ? rows / shape[0] : rows;
  const bool interleaved = call.attributes().boolean("interleaved");
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t angles = row / rows_of_batch * tokens + row / rows_of_token % tokens;
    for (int64_t i = 0; i < half; ++i) {
      int64_t first = row * 2 * half + (interleaved ? 2 * i : i);
      int64_t second = first + (interleaved ? 1 : half);
      if (call.attributes().boolean("inverse")) std::swap(first, second);
      const double cosine = cosines.at(angles * half + i), sine = sines.at(angles * half + i);
      call.outputs[0]->set(first, x.at(first) * cosine - x.at(second) * sine);
      call.outputs[0]->set(second, x.at(second) * cosine + x.at(first) * sine);
    }
  }
}

OperatorExample example_rotary_embedding(const Shape& x, const Shape& angles, Attributes attributes = {}) {
  return {.inputs = {{x, -2, 2}, {angles}, {angles}}, .attributes = std::move(attributes)};
}

const OperatorRegistration kRegistration({
    .name = "rotary_embedding",
    .documentation =
        "Rotary positions (Su et al. 2021, arXiv:2104.09864): each pair (a, b) of numbers along the last "
        "axis of x becomes (a cos - b sin, b cos + a sin), by the cosines and sines of the pair's angle at "
        "its token: [tokens, width / 2], or for each along the first axis of x [batch, tokens, width / 2]. "
        "Beside a 16-bit x they stay fp32, and the results are rounded once. ONNX's RotaryEmbedding, whose "
        "angles are looked up before.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "x"},
               {.name = "cosines", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "sines", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {{"axis", AttributeKind::integer, -3,
                    "Axis of x that counts tokens, not the last; negative from the end."},
                   {"interleaved", AttributeKind::boolean, false,
                    "Numbers 2i and 2i + 1 are a pair, not i and width / 2 + i."},
                   {"inverse", AttributeKind::boolean, false, "Rotate by minus the angles."}},
    .outputs = {"y"},
    .infer = infer_rotary_embedding,
    .gradient = gradient_rotary_embedding,
    .flops =
        [](const Node& node) { return 3.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_rotary_embedding,
    .examples = {example_rotary_embedding({2, 5, 3, 8}, {5, 4}),
                 example_rotary_embedding({3, 4, 6}, {3, 3}, {{"interleaved", true}}),
                 example_rotary_embedding({2, 3, 5, 4}, {2, 5, 2}, {{"axis", 2}, {"inverse", true}}),
                 example_rotary_embedding({2, 7, 3, 10}, {2, 7, 5},
                                          {{"interleaved", true}, {"inverse", true}}),
                 example_rotary_embedding({7, 2}, {7, 1}, {{"axis", 0}}),
                 example_rotary_embedding({1, 4, 2, 66}, {4, 33}),
                 example_rotary_embedding({2, 0, 3, 4}, {0, 2})},
    .decompose = decompose_rotary_embedding,
});

}  // namespace

Value* rotary_embedding(Value* x, Value* cosines, Value* sines, const RotaryOptions& options) {
  return apply("rotary_embedding", {x, cosines, sines},
               {{"axis", options.axis}, {"interleaved", options.interleaved}, {"inverse", options.inverse}})
      ->output();
}

}  // namespace tessera::ops
