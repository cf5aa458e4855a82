#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_top_k(const InferenceCall& call) {
  const int64_t k = call.attributes.integer("k");
  TensorType y = call.input(0);
  call.require(y.rank() >= 1, "a scalar has no last axis");
  const Dimension& extent = y.shape.back();
  call.require(k >= 1 && (!extent.is_static() || k <= extent.value()),
               "k must be in [1, " + extent.to_string() + "], got " + std::to_string(k));
  y.shape.back() = k;
  return {y, {DataType::int32, y.shape}};
}

// Orders NaN before every number, so that it cannot hide.
template <typename T>
bool before(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a > b;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(a) ? !std::isnan(b) : a > b;
  } else {
    return before(static_cast<float>(a), static_cast<float>(b));
  }
}

template <typename T>
void run(const ReferenceCall& call) {
  const auto x = call.inputs[0]->data<T>();
  const auto values = call.outputs[0]->data<T>();
  const auto indices = call.outputs[1]->data<int32_t>();
  const auto extent = static_cast<size_t>(call.inputs[0]->shape().back());
  const auto k = static_cast<size_t>(call.attributes().integer("k"));
  std::vector<int32_t> order(extent);
  for (size_t row = 0; row < x.size() / extent; ++row) {
    const auto element = [&](int32_t i) { return x[row * extent + static_cast<size_t>(i)]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return before<T>(element(a), element(b)); });
    for (size_t i = 0; i < k; ++i) {
      values[row * k + i] = element(order[i]);
      indices[row * k + i] = order[i];
    }
  }
}

void reference_top_k(const ReferenceCall& call) {
  dispatch(call.inputs[0]->data_type(), [&]<typename T>() { run<T>(call); });
}

// One scatter into x laid out flat: element (row, i) goes to row * extent + indices[row, i].
std::vector<Value*> gradient_top_k(const GradientCall& call) {
  Value* x = call.input(0);
  if (call.gradient(0) == nullptr) return {nullptr};
  const SymbolicShape& chosen = call.output()->shape();
  const int64_t extent = x->shape().back().value();
  const SymbolicShape rows{element_count(SymbolicShape(chosen.begin(), chosen.end() - 1)), 1};
  const SymbolicShape table{rows[0], chosen.back()};
  Value* first = multiply(iota(x->graph(), rows, 0, DataType::int64), static_cast<double>(extent));
  Value* places = add(reshape(cast(call.output(1), DataType::int64), table), first);
  Value* flat = scatter_add(places, reshape(call.gradient(0), table), element_count(x->shape()));
  return {reshape(flat, x->shape())};
}

OperatorExample example_top_k(Shape shape, int k, DataType type = DataType::fp32) {
  return {.inputs = {{std::move(shape), -20, 20, type}}, .attributes = {{"k", k}}};
}

OperatorSchema schema_top_k() {
  OperatorSchema schema;
  schema.name = "top_k";
  schema.documentation =
      "The k largest elements of each row along the last axis, largest first, and their int32 indices; of "
      "equal elements the first comes first, and NaN counts as the largest.";
  schema.operator_class = OperatorClass::indexing;
  schema.inputs = {{.name = "x", .types = kNumericTypes}};
  schema.attributes = {
      {.name = "k", .kind = AttributeKind::integer, .default_value = {}, .documentation = "how many"}};
  schema.outputs = {"values", "indices"};
  schema.infer = infer_top_k;
  schema.gradient = gradient_top_k;
  schema.reference = reference_top_k;
  schema.examples = {example_top_k({3, 7}, 2), example_top_k({5}, 5), example_top_k({2, 3, 9}, 4),
                     example_top_k({0, 4}, 2), example_top_k({2, 6}, 3, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_top_k()};

}  // namespace
}  // namespace tessera::ops
