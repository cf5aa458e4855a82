#include "device/cpu/post_operations.h"

#include <algorithm>
#include <optional>

#include "tessera/passes/fuse.h"

namespace tessera::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;

struct Activation {
  algorithm kind;
  float alpha = 0;
  float beta = 0;
};

std::optional<Activation> activation_of(const Node& node) {
  const std::string& name = node.operator_name();
  const Attributes& attributes = node.attributes();
  const auto real = [&](const char* attribute) { return static_cast<float>(attributes.real(attribute)); };
  if (name == "relu") return Activation{algorithm::eltwise_relu};
  if (name == "relu6") return Activation{algorithm::eltwise_clip_v2, 0, 6};
  if (name == "clip") return Activation{algorithm::eltwise_clip_v2, real("low"), real("high")};
  if (name == "leaky_relu") return Activation{algorithm::eltwise_relu, real("slope")};
  if (name == "elu") return Activation{algorithm::eltwise_elu, real("alpha")};
  if (name == "gelu") {
    return Activation{attributes.boolean("approximate") ? algorithm::eltwise_gelu_tanh
                                                        : algorithm::eltwise_gelu_erf};
  }
  if (name == "silu") return Activation{algorithm::eltwise_swish, 1};
  if (name == "sigmoid") return Activation{algorithm::eltwise_logistic};
  if (name == "tanh") return Activation{algorithm::eltwise_tanh};
  if (name == "softplus") return Activation{algorithm::eltwise_soft_relu, 1};
  if (name == "hard_sigmoid") return Activation{algorithm::eltwise_hardsigmoid, real("alpha"), real("beta")};
  if (name == "hard_swish") return Activation{algorithm::eltwise_hardswish, 1.0F / 6, 0.5F};
  if (name == "mish") return Activation{algorithm::eltwise_mish};
  return std::nullopt;
}

bool is_per_channel(const Value& value, int64_t channels) {
  const Shape shape = value.type().static_shape();
  return !shape.empty() && shape.back() == channels && element_count(shape) == channels;
}

// A convolution may have a bias itself.
const Value* own_bias(const Node& main) {
  return main.inputs().size() > 2 ? main.input(2) : nullptr;
}

}  // namespace

bool FusedChain::adds_whole_tensor() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.other != nullptr && step.other->shape() == step.node->output()->shape();
  });
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
  refuse_unless(chain.steps.size() + 1 == body.nodes().size(), "the body holds more than a chain");
  chain.bias = own_bias(*chain.main);
  const int64_t channels = chain.main->output()->type().static_shape().back();
  if (chain.bias == nullptr && !chain.steps.empty() && chain.steps[0].node->operator_name() == "add" &&
      is_per_channel(*chain.steps[0].other, channels)) {
    chain.bias = chain.steps[0].other;
    chain.steps.erase(chain.steps.begin());
  }
  return chain;
}

size_t input_index(const Node& node, const Value* value) {
  if (node.body() == nullptr) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i) == value) return i;
    }
  } else if (value->producer() == nullptr) {
    return value->index();
  }
  fail(ErrorCode::unsupported, "'{}' is made inside the body", value->name());
}

void append_post_operations(const Node& node, const FusedChain& chain, const memory::desc& result,
                            size_t channel_axis, dnnl::primitive_attr& attributes,
                            std::vector<OnednnOperand>& operands) {
  dnnl::post_ops operations;
  const memory::dims dims = result.get_dims();
  for (const FusedChain::Step& step : chain.steps) {
    const std::string& name = step.node->operator_name();
    if (step.other == nullptr) {
      const std::optional<Activation> activation = activation_of(*step.node);
      refuse_unless(activation.has_value(), "no post-operation for {}", name);
      operations.append_eltwise(activation->kind, activation->alpha, activation->beta);
      continue;
    }
    refuse_unless(name == "add" || name == "multiply", "no post-operation for {}", name);
    const memory::data_type type = onednn_type(step.other->data_type());
    memory::desc stored;
    if (step.other->shape() == step.node->output()->shape()) {
      stored = strided(dims, type, result.get_strides());
    } else {
      refuse_unless(is_per_channel(*step.other, dims[channel_axis]),
                    "'{}' of shape {} is neither per channel nor whole", step.other->name(),
                    to_string(step.other->type()));
      memory::dims broadcast(dims.size(), 1);
      broadcast[channel_axis] = dims[channel_axis];
      stored = dense(broadcast, type);
    }
    OnednnOperand operand;
    operand.argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(operations.len()) | DNNL_ARG_SRC_1;
    operand.index = input_index(node, step.other);
    operand.stored = stored;
    const memory::data_type wanted = compute_type(step.other->data_type());
    operand.wanted = strided(stored.get_dims(), wanted, stored.get_strides());
    operations.append_binary(name == "add" ? algorithm::binary_add : algorithm::binary_mul, operand.wanted);
    operands.push_back(operand);
  }
  attributes.set_post_ops(operations);
}

}  // namespace tessera::cpu
