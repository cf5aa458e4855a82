#include "device/cpu/onednn/post_operations.h"

#include <limits>
#include <optional>

namespace tessera::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;

struct Activation {
  algorithm kind;
  float alpha = 0;
  float beta = 0;
};

// The relu and clip of oneDNN 3.2 take the limit for NaN. So does its hard sigmoid, but x times the hard
// sigmoid of so steep a slope is relu (but for the least numbers below a normal one), keeps NaN, and costs as
// little; minus infinity becomes NaN.
constexpr Activation kRelu{algorithm::eltwise_hardswish, std::numeric_limits<float>::max(), 0};

bool has_groups(const Node& node) {
  return node.operator_name() == "convolution" && node.attributes().integer("groups") > 1;
}

std::optional<Activation> activation_of(const Node& node, memory::data_type type) {
  const std::string& name = node.operator_name();
  refuse_unless(name != "relu6" && name != "clip" && name != "hard_sigmoid",
                "{} of oneDNN 3.2 makes a number of NaN", name);
  // On processors with instructions for fp16 arithmetic.
  refuse_unless(name != "sigmoid" || type != memory::data_type::f16,
                "sigmoid of oneDNN 3.2 makes a number of NaN in fp16 on some processors");
  const Attributes& attributes = node.attributes();
  const auto real = [&](const char* attribute) { return static_cast<float>(attributes.real(attribute)); };
  if (name == "relu") return kRelu;
  if (name == "leaky_relu") return Activation{algorithm::eltwise_relu, real("slope")};
  if (name == "elu") return Activation{algorithm::eltwise_elu, real("alpha")};
  if (name == "gelu") {
    return Activation{attributes.boolean("approximate") ? algorithm::eltwise_gelu_tanh
                                                        : algorithm::eltwise_gelu_erf};
  }
  if (name == "silu") return Activation{algorithm::eltwise_swish, 1};
  if (name == "sigmoid") return Activation{algorithm::eltwise_logistic};
  if (name == "tanh") return Activation{algorithm::eltwise_tanh};
  if (name == "hard_swish") return Activation{algorithm::eltwise_hardswish, 1.0F / 6, 0.5F};
  return std::nullopt;
}

}  // namespace

bool takes_activation(const Node& activation) {
  const auto known = backend::unless_refused(
      [&] { return activation_of(activation, compute_type(activation.output()->data_type())); });
  return known.has_value() && known->has_value();
}

void append_post_operations(const Node& node, const FusedChain& chain, const memory::desc& result,
                            size_t channel_axis, dnnl::primitive_attr& attributes,
                            std::vector<OnednnOperand>& operands) {
  dnnl::post_ops operations;
  const memory::dims dims = result.get_dims();
  for (const FusedChain::Step& step : chain.steps) {
    const std::string& name = step.node->operator_name();
    if (step.other == nullptr) {
      const std::optional<Activation> activation = activation_of(*step.node, result.get_data_type());
      // Alone it does so without AVX-512, and after a relu with it.
      refuse_unless(name != "sigmoid" || !has_groups(*chain.main),
                    "sigmoid of oneDNN 3.2 after a convolution's groups makes a number of NaN");
      refuse_unless(activation.has_value(), "no post-operation for {}", name);
      operations.append_eltwise(activation->kind, activation->alpha, activation->beta);
      continue;
    }
    refuse_unless(name == "add" || name == "multiply", "no post-operation for {}", name);
    const memory::data_type type = onednn_type(step.other->data_type());
    memory::desc stored;
    if (step.takes_whole_tensor()) {
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
