#include "kernel_fuzz/errors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "tessera/base/random.h"

#include "kernel_fuzz/terms.h"

namespace tessera::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kShakes = 6;

// What only moves, selects or compares numbers, or makes whole ones.
bool is_exact(const Node& node) {
  static const std::set<std::string, std::less<>> kExact{
      "reduce_max", "reduce_min", "argmax",  "max_pool", "gather",   "set_rows", "one_hot", "top_k",
      "select",     "maximum",    "minimum", "negate",   "absolute", "relu",     "clip",    "relu6"};
  const OperatorClass kind = node.schema().operator_class;
  return kind == OperatorClass::movement || kind == OperatorClass::communication ||
         kExact.contains(node.operator_name()) ||
         (kind == OperatorClass::source && node.operator_name() != "random_normal" &&
          !node.schema().decompose);
}

Errors errors_within(const Tensor& output, const Tolerance& tolerance) {
  Errors errors;
  for (const double value : output.to_doubles())
    errors.push_back(std::isfinite(value) ? tolerance.absolute + tolerance.relative * std::abs(value) : 0);
  return errors;
}

// One rounding to the type, which may fall to either side, and the last digits of a vectorized function.
Tolerance primitive_tolerance(const Tensor& output, const Inputs& inputs) {
  const DataType type = output.data_type();
  if (!is_floating(type)) return {};
  const double a = is_half(type) ? unit_roundoff(DataType::fp32) : unit_roundoff(type);
  double magnitude = largest(output);
  for (const Tensor* input : inputs) magnitude = std::max(magnitude, largest(*input));
  return {least_spacing(type) + 8 * a * std::min(magnitude, 1.0), 2 * unit_roundoff(type) + 8 * a};
}

// A distance between two runs; infinite where one is finite and the other is not.
double distance(double a, double b) {
  if (std::isfinite(a) && std::isfinite(b)) return std::abs(a - b);
  return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : kInfinity;
}

// What the results of shaken runs differ by. Twice that is allowed, since few runs do not reach the bound,
// and as much as elements mostly move, since those of an element may all have moved it by little.
class Spread {
 public:
  explicit Spread(const Tensor& expected) : expected_(expected.to_doubles()), spread_(expected_.size(), 0) {}

  void add(const Tensor& shaken) {
    for (size_t i = 0; i < spread_.size(); ++i)
      spread_[i] = std::max(spread_[i], distance(shaken.at(static_cast<int64_t>(i)), expected_[i]));
  }
  Errors errors(DataType type) const {
    Errors finite;
    for (size_t i = 0; i < spread_.size(); ++i) {
      if (std::isfinite(spread_[i]) && std::isfinite(expected_[i])) finite.push_back(spread_[i]);
    }
    const auto middle = finite.begin() + static_cast<std::ptrdiff_t>(finite.size() / 2);
    std::nth_element(finite.begin(), middle, finite.end());
    const double common = finite.empty() || !is_floating(type) ? 0 : *middle;
    Errors errors;
    for (size_t i = 0; i < spread_.size(); ++i) {
      const double rounding = std::isfinite(expected_[i])
                                  ? least_spacing(type) + 2 * unit_roundoff(type) * std::abs(expected_[i])
                                  : 0;
      errors.push_back(2 * spread_[i] + 2 * common + rounding);
    }
    return errors;
  }

 private:
  std::vector<double> expected_;
  Errors spread_;
};

// In [-1, 1]: all up, all down, all by the whole at random, or by some part.
double push(uint64_t shake, const Random& random, uint64_t index) {
  if (shake == 0) return 1;
  if (shake == 1) return -1;
  const double unit = 2.0 * static_cast<double>(random.uniform(index)) - 1;
  return shake < 4 ? (unit < 0 ? -1 : 1) : unit;
}

// Any two nodes of different places go opposite ways by the whole in one of the first 2 * bits of places, and
// the other way round in another: comparisons of what is nearly equal turn over.
double push_apart(uint64_t shake, uint64_t place) {
  return (place >> (shake / 2) & 1) == shake % 2 ? 1 : -1;
}

// The operator on numbers of double precision, whatever its own type.
struct WideNode {
  Graph graph;
  const Node* node = nullptr;
  std::vector<Tensor> inputs;
};

void widen(const Node& node, const Inputs& inputs, WideNode& wide) {
  std::vector<Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DataType type = is_floating(inputs[i]->data_type()) ? DataType::fp64 : inputs[i]->data_type();
    wide.inputs.push_back(inputs[i]->cast(type));
    values.push_back(wide.graph.add_input(InputRole::input, "x" + std::to_string(i),
                                          {type, to_symbolic(inputs[i]->shape())}));
  }
  wide.node = wide.graph.add_node(node.operator_name(), node.operands(values), node.attributes());
}

// The largest term of what a norm's gradient adds up, which may cancel wholly: that is off by its own
// rounding whatever the inputs do.
double largest_term(const Node& node, const Inputs& inputs) {
  if (!node.operator_name().ends_with("norm_gradient")) return 0;
  double inverse = largest(*inputs[4]);
  if (node.operator_name() == "batch_norm_gradient") {
    double least = std::numeric_limits<double>::max();
    for (const double variance : inputs[4]->to_doubles()) least = std::min(least, variance);
    inverse = 1 / std::sqrt(std::max(least, 0.0) + node.attributes().real("epsilon"));
  }
  return largest(*inputs[0]) * std::max(1.0, largest(*inputs[2])) * std::max(1.0, inverse);
}

// What an operand of a product may lose where that is in TF32.
const double kTf32Rounding = std::ldexp(1.0, -10);

// What products of what is made inside, such as attention's weights, lose of it: kernels hand it to the
// Tensor Cores in the node's own 16 bits, or in TF32.
double rounding_inside(const Node& node, DataType type, bool tf32) {
  if (node.schema().operator_class != OperatorClass::contraction) return 0;
  if (is_half(type)) return unit_roundoff(type);
  return tf32 && type == DataType::fp32 ? kTf32Rounding : 0;
}

// What sums over rows, channels or keys: as if each input were off by the sums' rounding, and by that of what
// products take from inside.
std::vector<Errors> errors_by_inputs(const Node& node, const Inputs& inputs,
                                     const std::vector<Tensor>& outputs, bool tf32) {
  WideNode wide;
  widen(node, inputs, wide);
  const auto run = [&](const std::vector<Tensor>& tensors) {
    Inputs pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    return run_reference(*wide.node, pointers);
  };
  int64_t terms = 1;
  for (const Tensor* input : inputs) terms = std::max(terms, input->size());
  if (!inputs.empty() && inputs[0]->size() > 0) {
    const Shape& shape = inputs[0]->shape();
    // A row, a channel or a head.
    terms = std::max(shape.back(), inputs[0]->size() / std::max<int64_t>(shape.back(), 1));
  }
  const DataType type = outputs[0].data_type() == DataType::fp64 ? DataType::fp64 : DataType::fp32;
  const double relative =
      std::max(tolerance_for(OperatorClass::normalization, type, {.terms = terms}).relative,
               rounding_inside(node, outputs[0].data_type(), tf32));
  const std::vector<Tensor> exact = run(wide.inputs);
  std::vector<Spread> spreads;
  for (const Tensor& tensor : exact) spreads.emplace_back(tensor);
  for (uint64_t shake = 2; shake < kShakes; ++shake) {
    const Random random(shake, 17);
    uint64_t drawn = 0;
    std::vector<Tensor> shaken;
    for (const Tensor& tensor : wide.inputs) {
      shaken.push_back(tensor.clone());
      if (!is_floating(tensor.data_type())) continue;
      for (double& x : shaken.back().data<double>()) x += x * relative * push(shake, random, drawn++);
    }
    const std::vector<Tensor> moved = run(shaken);
    for (size_t i = 0; i < moved.size(); ++i) spreads[i].add(moved[i]);
  }
  std::vector<Errors> errors;
  const double rounding =
      tolerance_for(OperatorClass::normalization, type, {.magnitude = largest_term(node, inputs)}).absolute;
  for (size_t i = 0; i < outputs.size(); ++i) {
    errors.push_back(spreads[i].errors(outputs[i].data_type()));
    if (largest_term(node, inputs) == 0) continue;
    for (double& error : errors.back()) error += rounding;
  }
  return errors;
}

// The work of a composite operator, or the body of a fused node, as a graph of the node's inputs.
struct Inside {
  std::unique_ptr<Graph> own;
  const Graph* graph = nullptr;
};

Inside look_inside(const Node& node) {
  Inside inside;
  if (node.body() != nullptr) {
    inside.graph = node.body();
  } else if (node.schema().decompose) {
    inside.own = std::make_unique<Graph>("inside");
    std::vector<Value*> inputs;
    for (size_t i = 0; i < node.inputs().size(); ++i)
      inputs.push_back(
          inside.own->add_input(InputRole::input, "x" + std::to_string(i), node.input(i)->type()));
    for (Value* value : node.schema().decompose(node, inputs)) inside.own->add_output(value->name(), value);
    inside.graph = inside.own.get();
  }
  return inside;
}

using Values = std::unordered_map<const Value*, Tensor>;

Inputs inputs_of(const Node& node, const Values& values) {
  Inputs inputs;
  for (const Value* input : node.inputs()) inputs.push_back(&values.at(input));
  return inputs;
}

// Of operands that are made inside and rounded to TF32.
double tf32_error(const Node& node, const Inputs& inputs, const std::vector<Tensor>& outputs) {
  if (node.schema().operator_class != OperatorClass::contraction ||
      node.output()->data_type() != DataType::fp32)
    return 0;
  const bool made_inside = std::any_of(node.inputs().begin(), node.inputs().end(),
                                       [](const Value* input) { return input->producer() != nullptr; });
  const std::optional<Problem> problem = problem_of(node, inputs, outputs);
  if (!made_inside || !problem.has_value()) return 0;
  return 4 * std::sqrt(static_cast<double>(problem->terms)) * problem->magnitude * kTf32Rounding;
}

// What an activation after a product makes of an infinity may be NaN instead, in kernels that compute both.
void forgive_infinite(const Node& node, const Inputs& inputs, std::vector<Errors>& errors) {
  if (node.inputs().size() != 1 || node.schema().operator_class != OperatorClass::elementwise) return;
  for (size_t j = 0; j < errors[0].size(); ++j) {
    if (std::isinf(inputs[0]->at(static_cast<int64_t>(j)))) errors[0][j] = kInfinity;
  }
}

// What overflows in the reference need not in a kernel that rounds to 16 bits once, at the end.
void forgive_overflow(const Tensor& output, Errors& errors) {
  if (output.data_type() != DataType::fp16) return;
  for (size_t j = 0; j < errors.size(); ++j) {
    if (std::isinf(output.at(static_cast<int64_t>(j)))) errors[j] = kInfinity;
  }
}

bool holds_product(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->schema().operator_class == OperatorClass::contraction;
  });
}

std::vector<Errors> errors_by_parts(const Graph& graph, const Inputs& inputs,
                                    const std::vector<Tensor>& outputs, bool tf32) {
  Values exact;
  for (size_t i = 0; i < inputs.size(); ++i) exact[graph.inputs()[i].get()] = *inputs[i];
  std::unordered_map<const Value*, Errors> errors;
  const bool product = holds_product(graph);
  for (const auto& node : graph.nodes()) {
    const Inputs own = inputs_of(*node, exact);
    Outcome outcome = run_with_errors(*node, own, tf32);
    const double more = tf32 ? tf32_error(*node, own, outcome.outputs) : 0;
    if (product) forgive_infinite(*node, own, outcome.errors);
    for (size_t i = 0; i < outcome.outputs.size(); ++i) {
      for (double& error : outcome.errors[i]) error += more;
      forgive_overflow(outcome.outputs[i], outcome.errors[i]);
      errors[node->output(i)] = std::move(outcome.errors[i]);
      exact[node->output(i)] = std::move(outcome.outputs[i]);
    }
  }
  std::vector<Spread> spreads;
  for (const Tensor& output : outputs) spreads.emplace_back(output);
  const uint64_t pairs = 2 * static_cast<uint64_t>(std::bit_width(graph.nodes().size()));
  for (uint64_t shake = 0; shake < kShakes + pairs; ++shake) {
    const Random random(shake, 23);
    uint64_t drawn = 0;
    uint64_t place = 0;
    Values values;
    for (const auto& input : graph.inputs()) values[input.get()] = exact.at(input.get());
    for (const auto& node : graph.nodes()) {
      const uint64_t own_place = place++;
      std::vector<Tensor> made = run_reference(*node, inputs_of(*node, values));
      for (size_t i = 0; i < made.size(); ++i) {
        const Errors& own = errors.at(node->output(i));
        for (int64_t j = 0; j < made[i].size() && is_floating(made[i].data_type()); ++j) {
          const double by =
              own[static_cast<size_t>(j)] *
              (shake < kShakes ? push(shake, random, drawn++) : push_apart(shake - kShakes, own_place));
          if (std::isinf(by)) {
            if (shake == 0) made[i].set(j, std::numeric_limits<double>::quiet_NaN());
          } else if (by != 0) {
            made[i].set(j, made[i].at(j) + by);
          }
        }
        values[node->output(i)] = std::move(made[i]);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) spreads[i].add(values.at(graph.outputs()[i].value));
  }
  std::vector<Errors> result;
  for (size_t i = 0; i < outputs.size(); ++i) result.push_back(spreads[i].errors(outputs[i].data_type()));
  return result;
}

}  // namespace

Outcome run_with_errors(const Node& node, const std::vector<const Tensor*>& inputs, bool tf32) {
  Outcome outcome;
  outcome.outputs = run_reference(node, inputs);
  const OperatorSchema& schema = node.schema();
  const auto within = [&](const std::function<Tolerance(const Tensor&)>& tolerance) {
    for (const Tensor& output : outcome.outputs)
      outcome.errors.push_back(errors_within(output, tolerance(output)));
  };
  const std::optional<Problem> problem = problem_of(node, inputs, outcome.outputs);
  if (is_exact(node)) {
    within([](const Tensor&) { return Tolerance{}; });
  } else if (problem.has_value()) {
    within([&](const Tensor& output) {
      return tolerance_for(schema.operator_class, output.data_type(), *problem);
    });
  } else if (const Inside inside = look_inside(node); inside.graph != nullptr) {
    outcome.errors = errors_by_parts(*inside.graph, inputs, outcome.outputs, tf32);
  } else if (schema.scalar || schema.operator_class == OperatorClass::source) {
    within([&](const Tensor& output) {
      return schema.scalar ? primitive_tolerance(output, inputs)
                           : tolerance_for(OperatorClass::source, output.data_type());
    });
  } else {
    outcome.errors = errors_by_inputs(node, inputs, outcome.outputs, tf32);
  }
  return outcome;
}

}  // namespace tessera::testing
