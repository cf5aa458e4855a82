// Activations that were written out as products, as exporters of other frameworks do, become the operators
// that they are: silu, hard_swish and gelu. What stands before may end with one of those in its own kernel;
// written out, they read its result twice, in a pass over memory of their own.
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

// As far as fp32 tells: a constant that is off by more is another function's.
bool is_about(double value, double wanted) {
  return std::abs(value - wanted) <= 1e-6 * std::abs(wanted);
}

// Of values and one number. What nothing else reads is taken apart.
struct Product {
  std::vector<Value*> factors;
  double number = 1;
};

constexpr size_t kMostFactors = 2;
constexpr int kMostNodes = 4;  // one inside the other, that an activation is written with

void take_apart(Value* value, int most_nodes, Product& product) {
  const Node* node = value->producer();
  const bool multiplies = node != nullptr && node->operator_name() == "multiply";
  const bool divides = node != nullptr && node->operator_name() == "divide";
  if ((!multiplies && !divides) || most_nodes == 0 || product.factors.size() > kMostFactors)
    return product.factors.push_back(value);
  const auto take_operand = [&](size_t side) {
    Value* operand = node->input(side);
    take_apart(operand, sole_reader(operand) == node ? most_nodes - 1 : 0, product);
  };
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const std::optional<double> number = scalar_constant(node->input(1 - side));
    if (!number.has_value() || node->input(side)->type() != value->type() || (divides && side == 1)) continue;
    product.number = multiplies ? product.number * *number : product.number / *number;
    return take_operand(side);
  }
  if (divides) return product.factors.push_back(value);
  take_operand(0);
  take_operand(1);
}

// x, where the value is x plus about that number, and nothing but `reader` reads it; else null.
const Value* without_addend(const Value* value, double wanted, const Node* reader) {
  const Node* add = producer_of(value, "add");
  if (add == nullptr || sole_reader(value) != reader) return nullptr;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const std::optional<double> number = scalar_constant(add->input(1 - side));
    if (number.has_value() && is_about(*number, wanted)) return add->input(side);
  }
  return nullptr;
}

// x * sigmoid(x)
bool is_silu(const Value* x, const Value* gate, double number) {
  const Node* sigmoid = producer_of(gate, "sigmoid");
  return sigmoid != nullptr && sigmoid->input(0) == x && is_about(number, 1);
}

// x * hard_sigmoid(x), or x * relu6(x + 3) / 6
bool is_hard_swish(const Value* x, const Value* gate, double number) {
  const Node* node = gate->producer();
  if (node == nullptr) return false;
  const Attributes& attributes = node->attributes();
  if (node->operator_name() == "hard_sigmoid") {
    return node->input(0) == x && is_about(number, 1) && is_about(attributes.real("alpha"), 1.0 / 6) &&
           is_about(attributes.real("beta"), 0.5);
  }
  const bool is_relu6 =
      node->operator_name() == "relu6" ||
      (node->operator_name() == "clip" && attributes.real("low") == 0 && attributes.real("high") == 6);
  return is_relu6 && is_about(number, 1.0 / 6) && without_addend(node->input(0), 3, node) == x;
}

// x * (1 + erf(x / sqrt(2))) / 2
bool is_gelu(const Value* x, const Value* gate, double number) {
  const Value* error = without_addend(gate, 1, sole_reader(gate));
  const Node* erf = error == nullptr ? nullptr : producer_of(error, "erf");
  if (erf == nullptr || sole_reader(error) != gate->producer() || !is_about(number, 0.5)) return false;
  Product argument;
  take_apart(erf->input(0), kMostNodes, argument);
  return argument.factors.size() == 1 && argument.factors[0] == x &&
         is_about(argument.number, 1 / std::numbers::sqrt2);
}

// The activation that the product is, or null.
Value* activation_of(Value* result) {
  Product product;
  take_apart(result, kMostNodes, product);
  if (product.factors.size() != kMostFactors) return nullptr;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    Value* x = product.factors[side];
    const Value* gate = product.factors[1 - side];
    if (x->type() != result->type() || sole_reader(gate) == nullptr) continue;
    if (is_silu(x, gate, product.number)) return ops::silu(x);
    if (is_hard_swish(x, gate, product.number)) return ops::hard_swish(x);
    if (is_gelu(x, gate, product.number)) return ops::gelu(x);
  }
  return nullptr;
}

}  // namespace

bool recognize_activations(Graph& graph, const PassContext&) {
  bool changed = false;
  for (const char* name : {"multiply", "divide"}) {
    for (Node* node : nodes_of(graph, name)) {
      if (!is_read(*node) || !is_floating(node->output()->data_type())) continue;
      const InsertionPoint here(graph, node);
      Value* activation = activation_of(node->output());
      if (activation == nullptr) continue;
      graph.replace_all_uses(node->output(), activation);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tessera::passes
