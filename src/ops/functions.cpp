#include "tessera/ops/functions.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera::ops {
namespace {

Value* one(const std::string& operator_name, const std::vector<Value*>& inputs, Attributes attributes = {}) {
  return apply(operator_name, inputs, std::move(attributes))->output();
}

}  // namespace

Node* apply(const std::string& operator_name, const std::vector<Value*>& inputs, Attributes attributes,
            const std::string& name) {
  const auto given =
      std::find_if(inputs.begin(), inputs.end(), [](const Value* input) { return input != nullptr; });
  require(given != inputs.end(), ErrorCode::invalid_argument, "{} needs an input", operator_name);
  return (*given)->graph().add_node(operator_name, inputs, std::move(attributes), name);
}

Value* constant(Graph& graph, Tensor value) {
  return graph.add_node("constant", {}, {{"value", std::move(value)}})->output();
}
Value* constant_like(Value* x, double value) {
  return constant(x->graph(), Tensor::scalar(x->data_type(), value));
}
Value* zeros_like(Value* x) {
  return broadcast_to(constant_like(x, 0), x->shape());
}
Value* random_uniform(Value* counter, SymbolicShape shape, int64_t stream, DataType type) {
  return one("random_uniform", {counter}, {{"shape", std::move(shape)}, {"stream", stream}, {"type", type}});
}
Value* random_normal(Value* counter, SymbolicShape shape, int64_t stream, DataType type) {
  return one("random_normal", {counter}, {{"shape", std::move(shape)}, {"stream", stream}, {"type", type}});
}
Value* iota(Graph& graph, SymbolicShape shape, int64_t axis, DataType type) {
  return graph.add_node("iota", {}, {{"shape", std::move(shape)}, {"axis", axis}, {"type", type}})->output();
}
Value* count_elements(Graph& graph, SymbolicShape shape, DataType type) {
  if (is_static(shape))
    return constant(graph, Tensor::scalar(type, static_cast<double>(element_count(to_static(shape)))));
  return graph.add_node("count_elements", {}, {{"shape", std::move(shape)}, {"type", type}})->output();
}

Value* add(Value* a, Value* b) {
  return one("add", {a, b});
}
Value* subtract(Value* a, Value* b) {
  return one("subtract", {a, b});
}
Value* multiply(Value* a, Value* b) {
  return one("multiply", {a, b});
}
Value* divide(Value* a, Value* b) {
  return one("divide", {a, b});
}
Value* maximum(Value* a, Value* b) {
  return one("maximum", {a, b});
}
Value* minimum(Value* a, Value* b) {
  return one("minimum", {a, b});
}
Value* power(Value* a, Value* b) {
  return one("power", {a, b});
}
Value* add(Value* a, double b) {
  return add(a, constant_like(a, b));
}
Value* subtract(double a, Value* b) {
  return subtract(constant_like(b, a), b);
}
Value* multiply(Value* a, double b) {
  return multiply(a, constant_like(a, b));
}
Value* divide(Value* a, double b) {
  return divide(a, constant_like(a, b));
}
Value* equal(Value* a, Value* b) {
  return one("equal", {a, b});
}
Value* not_equal(Value* a, Value* b) {
  return one("not_equal", {a, b});
}
Value* less(Value* a, Value* b) {
  return one("less", {a, b});
}
Value* less_equal(Value* a, Value* b) {
  return one("less_equal", {a, b});
}
Value* greater(Value* a, Value* b) {
  return one("greater", {a, b});
}
Value* greater_equal(Value* a, Value* b) {
  return one("greater_equal", {a, b});
}
Value* logical_and(Value* a, Value* b) {
  return one("logical_and", {a, b});
}
Value* logical_or(Value* a, Value* b) {
  return one("logical_or", {a, b});
}
Value* logical_not(Value* a) {
  return one("logical_not", {a});
}
Value* select(Value* condition, Value* when_true, Value* when_false) {
  return one("select", {condition, when_true, when_false});
}
Value* cast(Value* x, DataType type) {
  return x->data_type() == type ? x : one("cast", {x}, {{"type", type}});
}
Value* negate(Value* x) {
  return one("negate", {x});
}
Value* absolute(Value* x) {
  return one("absolute", {x});
}
Value* sign(Value* x) {
  return one("sign", {x});
}
Value* exp(Value* x) {
  return one("exp", {x});
}
Value* log(Value* x) {
  return one("log", {x});
}
Value* sqrt(Value* x) {
  return one("sqrt", {x});
}
Value* rsqrt(Value* x) {
  return one("rsqrt", {x});
}
Value* reciprocal(Value* x) {
  return one("reciprocal", {x});
}
Value* square(Value* x) {
  return one("square", {x});
}
Value* erf(Value* x) {
  return one("erf", {x});
}
Value* tanh(Value* x) {
  return one("tanh", {x});
}
Value* sin(Value* x) {
  return one("sin", {x});
}
Value* cos(Value* x) {
  return one("cos", {x});
}
Value* floor(Value* x) {
  return one("floor", {x});
}
Value* ceil(Value* x) {
  return one("ceil", {x});
}
Value* round(Value* x) {
  return one("round", {x});
}
Value* is_finite(Value* x) {
  return one("is_finite", {x});
}
Value* sigmoid(Value* x) {
  return one("sigmoid", {x});
}
Value* relu(Value* x) {
  return one("relu", {x});
}
Value* relu6(Value* x) {
  return one("relu6", {x});
}
Value* leaky_relu(Value* x, double slope) {
  return one("leaky_relu", {x}, {{"slope", slope}});
}
Value* elu(Value* x, double alpha) {
  return one("elu", {x}, {{"alpha", alpha}});
}
Value* gelu(Value* x, bool approximate) {
  return one("gelu", {x}, {{"approximate", approximate}});
}
Value* silu(Value* x) {
  return one("silu", {x});
}
Value* softplus(Value* x) {
  return one("softplus", {x});
}
Value* hard_sigmoid(Value* x) {
  return one("hard_sigmoid", {x});
}
Value* hard_swish(Value* x) {
  return one("hard_swish", {x});
}
Value* mish(Value* x) {
  return one("mish", {x});
}
Value* clip(Value* x, double low, double high) {
  return one("clip", {x}, {{"low", low}, {"high", high}});
}
Value* dropout(Value* x, Value* counter, double rate, int64_t stream) {
  return one("dropout", {x, counter}, {{"rate", rate}, {"stream", stream}});
}

Value* gather(Value* table, Value* indices, int64_t axis) {
  return one("gather", {table, indices}, {{"axis", axis}});
}
Value* scatter_add(Value* indices, Value* updates, Dimension extent) {
  return one("scatter_add", {indices, updates}, {{"extent", SymbolicShape{std::move(extent)}}});
}
CombinedRows combine_rows(Value* indices, Value* rows) {
  Node* node = apply("combine_rows", {indices, rows});
  return {node->output(0), node->output(1)};
}
Value* set_rows(Value* table, Value* indices, Value* rows) {
  return one("set_rows", {table, indices, rows});
}
Value* one_hot(Value* indices, int64_t depth, DataType type) {
  return one("one_hot", {indices}, {{"depth", depth}, {"type", type}});
}
TopK top_k(Value* x, int64_t k) {
  Node* node = apply("top_k", {x}, {{"k", k}});
  return {node->output(0), node->output(1)};
}

Value* reshape(Value* x, SymbolicShape shape) {
  Dimension known(1);
  Dimension* unknown = nullptr;
  for (Dimension& extent : shape) {
    if (extent == Dimension(-1)) {
      require(unknown == nullptr, ErrorCode::invalid_argument, "reshape of '{}': only one extent may be -1",
              x->name());
      unknown = &extent;
    } else {
      known = known * extent;
    }
  }
  if (unknown != nullptr) {
    const std::optional<Dimension> rest = element_count(x->shape()).divide_exactly(known);
    require(rest.has_value(), ErrorCode::invalid_graph, "reshape of '{}': {} is no multiple of {}", x->name(),
            to_string(x->shape()), known.to_string());
    *unknown = *rest;
  }
  return shape == x->shape() ? x : one("reshape", {x}, {{"shape", std::move(shape)}});
}
Value* transpose(Value* x, std::vector<int64_t> permutation) {
  return one("transpose", {x}, {{"permutation", std::move(permutation)}});
}
Value* broadcast_to(Value* x, SymbolicShape shape) {
  return shape == x->shape() ? x : one("broadcast_to", {x}, {{"shape", std::move(shape)}});
}
Value* concat(const std::vector<Value*>& inputs, int64_t axis) {
  return one("concat", inputs, {{"axis", axis}});
}
std::vector<Value*> split(Value* x, std::vector<int64_t> sizes, int64_t axis) {
  Node* node = apply("split", {x}, {{"sizes", std::move(sizes)}, {"axis", axis}});
  std::vector<Value*> parts;
  for (const auto& output : node->outputs()) parts.push_back(output.get());
  return parts;
}
Value* slice(Value* x, std::vector<int64_t> starts, std::vector<int64_t> limits,
             std::vector<int64_t> strides) {
  if (strides.empty()) strides.assign(starts.size(), 1);
  return one("slice", {x},
             {{"starts", std::move(starts)}, {"limits", std::move(limits)}, {"strides", std::move(strides)}});
}
Value* pad(Value* x, std::vector<int64_t> low, std::vector<int64_t> high, double value,
           std::vector<int64_t> interior) {
  if (interior.empty()) interior.assign(low.size(), 0);
  return one("pad", {x},
             {{"low", std::move(low)},
              {"high", std::move(high)},
              {"value", value},
              {"interior", std::move(interior)}});
}

Value* reduce_to_shape(Value* gradient, const SymbolicShape& shape) {
  if (gradient->shape() == shape) return gradient;
  const size_t extra = gradient->shape().size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < gradient->shape().size(); ++axis) {
    const bool broadcast =
        axis < extra || (shape[axis - extra] == Dimension(1) && gradient->shape()[axis] != Dimension(1));
    if (broadcast) axes.push_back(static_cast<int64_t>(axis));
  }
  return reshape(axes.empty() ? gradient : reduce_sum(gradient, {.axes = axes}), shape);
}

}  // namespace tessera::ops
