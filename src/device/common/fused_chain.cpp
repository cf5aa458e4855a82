#include "tessera/device/common/fused_chain.h"

#include <algorithm>

#include "tessera/device/common/node_body.h"
#include "tessera/device/common/refusal.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

// A convolution may have a bias itself.
const Value* own_bias(const Node& main) {
  return main.inputs().size() > 2 ? main.input(2) : nullptr;
}

}  // namespace

bool is_per_channel(const Value& value, int64_t channels) {
  const Shape shape = value.type().static_shape();
  return !shape.empty() && shape.back() == channels && element_count(shape) == channels;
}

bool FusedChain::Step::takes_whole_tensor() const {
  return other != nullptr && other->shape() == node->output()->shape();
}

bool FusedChain::adds_whole_tensor() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.takes_whole_tensor(); });
}

FusedChain parse_chain(const Node& node, std::string_view main_operator) {
  FusedChain chain;
  if (node.body() == nullptr) {
    chain.main = &node;
    chain.bias = own_bias(node);
    return chain;
  }
  const Graph& body = *node.body();
  refuse_unless(body.outputs().size() == 1, "the fused node makes {} values", body.outputs().size());
  size_t count = 0;
  for (const auto& inner : body.nodes()) {
    if (inner->operator_name() != main_operator) continue;
    chain.main = inner.get();
    ++count;
  }
  refuse_unless(count == 1, "the body holds {} nodes of operator {}", count, main_operator);
  const Value* current = chain.main->output();
  while (current != body.outputs()[0].value) {
    const Node* step = sole_reader(current);
    refuse_unless(step != nullptr && step->inputs().size() <= 2, "the body is no chain at '{}'",
                  current->name());
    const Value* other = nullptr;
    if (step->inputs().size() == 2) other = step->input(step->input(0) == current ? 1 : 0);
    refuse_unless(step->output()->type() == chain.main->output()->type(), "'{}' changes the type",
                  step->name());
    chain.steps.push_back({step, other});
    current = step->output();
  }
  const bool casts = producer_of(chain.main->input(0), "cast") != nullptr;  // fuse_input_casts
  const size_t nodes = chain.steps.size() + 1 + (casts ? 1 : 0);
  refuse_unless(nodes == body.nodes().size(), "the body holds more than a chain");
  chain.bias = own_bias(*chain.main);
  const int64_t channels = chain.main->output()->type().static_shape().back();
  if (chain.bias == nullptr && !chain.steps.empty() && chain.steps[0].node->operator_name() == "add" &&
      is_per_channel(*chain.steps[0].other, channels)) {
    chain.bias = chain.steps[0].other;
    chain.steps.erase(chain.steps.begin());
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
    refuse_unless(epilogue.activation == nullptr, "'{}' behind the activation", name);
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
