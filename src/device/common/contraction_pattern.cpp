#include "tessera/device/common/contraction_pattern.h"

#include <algorithm>

#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

const Value* other_operand(const Node& step, const Value* result) {
  return step.inputs().size() < 2 ? nullptr : step.input(step.input(0) == result ? 1 : 0);
}

bool is_elementwise(const Node* node) {
  return node != nullptr && node->schema().operator_class == OperatorClass::elementwise;
}

// Whether the operand is elementwise work for the sum alone, and elementwise work alone reads the sum, as
// where an optimizer adds the decay of a weight to its gradient. All that is one cluster, which reads the
// product once; with the sum in the product's kernel the operand would be stored for it first.
bool belongs_to_cluster(const Value& operand, const Node& sum) {
  const std::vector<Node*> readers = readers_of(sum.output());
  return is_elementwise(operand.producer()) && sole_reader(&operand) != nullptr && !readers.empty() &&
         std::ranges::all_of(readers, is_elementwise);
}

// Whether of two products that are added `other` is the later one, which takes the sum: what the earlier one
// reads need not be kept for it.
bool takes_sum_itself(const Value& other, const Node& main) {
  const Node* later = producer_of(&other, "matmul");
  return later != nullptr && main.operator_name() == "matmul" && main.stands_before(*later) &&
         sole_reader(&other) != nullptr;
}

class ChainMatch {
 public:
  ChainMatch(Node& main, const EpilogueLimits& limits) : limits_(limits) {
    match_.members.push_back(&main);
    match_.add_roles_of(main);
  }

  std::optional<FusionMatch> grow() {
    while (Node* next = sole_reader(result())) {
      if (next->output()->type() != result()->type() || !accepts(*next)) break;
      match_.members.push_back(next);
    }
    if (match_.members.size() == 1) return std::nullopt;
    match_.outputs = {result()};
    return std::move(match_);
  }

 private:
  Value* result() const { return match_.members.back()->output(); }

  bool accepts(Node& next) {
    const bool first = match_.members.size() == 1;
    if (next.schema().traits.activation) return accepts_activation(next);
    const std::string& name = next.operator_name();
    if (name != "add" && name != "multiply") return false;
    if (limits_.ordered && (name != "add" || is_active_)) return false;
    Value& other = *next.input(next.input(0) == result() ? 1 : 0);
    if (is_per_channel(other, result()->shape())) {
      const bool bias = name == "add" && first && match_.value("bias") == nullptr;
      const bool fits = bias && other.data_type() == result()->data_type();
      if (fits || !limits_.ordered) {
        if (bias) match_.add_role("bias", &other);
        match_.add_role(bias ? "biased" : "step", next.output());
        return true;
      }
      // Of a single row a whole tensor has one number per channel, too.
    }
    if (name != "add" || has_residual_ || other.type() != result()->type()) return false;
    const bool is_product_alone = first && takes_sum_itself(other, *match_.members.front());
    if (is_product_alone || belongs_to_cluster(other, next)) return false;
    has_residual_ = true;
    match_.add_role("step", next.output());
    return true;
  }

  bool accepts_activation(Node& next) {
    if (limits_.ordered && is_active_) return false;
    if (limits_.takes_activation && !limits_.takes_activation(next)) return false;
    is_active_ = true;
    match_.add_role("step", next.output());
    return true;
  }

  const EpilogueLimits& limits_;
  FusionMatch match_;
  bool has_residual_ = false;
  bool is_active_ = false;
};

// A role of the operator names its only result "y".
const Node& main_of(const Node& node, const std::string& prefix) {
  return node.body() == nullptr ? node : maker_of_role(node, prefix + "y");
}

}  // namespace

FusionPattern contraction_pattern(const std::string& main, EpilogueLimits limits) {
  FusionPattern pattern{
      .kind = main, .anchor = main, .roles = {"a", "b", "x", "weight", "y", "bias", "biased", "step"}};
  pattern.match = [limits = std::move(limits)](Node& node) -> std::optional<FusionMatch> {
    if (!is_floating(node.output()->data_type())) return std::nullopt;
    return ChainMatch(node, limits).grow();
  };
  return pattern;
}

bool is_per_channel(const Value& value, int64_t channels) {
  return tessera::is_per_channel(value, {channels});
}

bool FusedChain::Step::takes_whole_tensor() const {
  return other != nullptr && other->shape() == node->output()->shape();
}

bool FusedChain::adds_whole_tensor() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.takes_whole_tensor(); });
}

FusedChain read_chain(const Node& node, const std::string& prefix) {
  FusedChain chain;
  chain.main = &main_of(node, prefix);
  if (has_role(node, prefix + "bias")) chain.bias = &in_role(node, prefix + "bias");
  const Value* before =
      has_role(node, prefix + "biased") ? &in_role(node, prefix + "biased") : chain.main->output();
  for (const Value* result : values_in_role(node, prefix + "step")) {
    chain.steps.push_back({result->producer(), other_operand(*result->producer(), before)});
    before = result;
  }
  return chain;
}

Epilogue read_epilogue(const Node& node, const FusedChain& chain,
                       std::initializer_list<std::string_view> activations) {
  Epilogue epilogue;
  if (chain.bias != nullptr) {
    refuse_unless(chain.bias->data_type() == chain.main->output()->data_type(), "a bias of another type");
    epilogue.bias = input_index(node, chain.bias);
  }
  for (const FusedChain::Step& step : chain.steps) {
    const std::string& name = step.node->operator_name();
    refuse_unless(epilogue.activation == nullptr, "'{}' after the activation", name);
    if (std::find(activations.begin(), activations.end(), name) != activations.end()) {
      epilogue.activation = step.node;
      continue;
    }
    refuse_unless(name == "add" && !epilogue.residual.has_value() && step.takes_whole_tensor(),
                  "'{}' is neither a residual nor the activation", name);
    epilogue.residual = input_index(node, step.other);
  }
  return epilogue;
}

}  // namespace tessera::backend
