#include "device/cpu/panels/loop_epilogue.h"

#include <algorithm>

#include "tessera/device/common/refusal.h"

namespace tessera::cpu {
namespace {

using backend::refuse_unless;

const std::initializer_list<std::string_view> kActivations = {"relu",       "relu6", "clip",   "gelu",
                                                              "hard_swish", "silu",  "sigmoid"};

LoopActivation activation_of(const Node& node) {
  const std::string& name = node.operator_name();
  if (name == "silu") return LoopActivation::silu;
  if (name == "hard_swish") return LoopActivation::hard_swish;
  if (name == "sigmoid") return LoopActivation::sigmoid;
  if (name != "gelu") return LoopActivation::none;
  return node.attributes().boolean("approximate") ? LoopActivation::gelu_tanh : LoopActivation::gelu;
}

void set_activation(LoopEpilogue& epilogue, const Node& activation) {
  epilogue.activation = activation_of(activation);
  if (epilogue.activation != LoopActivation::none) return;
  const std::string& name = activation.operator_name();
  if (name == "clip") {
    epilogue.low = static_cast<float>(activation.attributes().real("low"));
    epilogue.high = static_cast<float>(activation.attributes().real("high"));
    return;
  }
  epilogue.low = 0;
  if (name == "relu6") epilogue.high = 6;
}

const float* memory_of(const KernelArguments& arguments, std::optional<size_t> input) {
  return input.has_value() ? static_cast<const float*>(arguments.inputs[*input]) : nullptr;
}

}  // namespace

LoopEpilogue LoopEpilogue::from(int64_t element, int64_t channel) const {
  LoopEpilogue part = *this;
  if (bias != nullptr) part.bias += channel;
  if (residual != nullptr) part.residual += element;
  return part;
}

bool EpilogueRequest::is_empty() const {
  return !bias.has_value() && !residual.has_value() && !limits.is_limited() &&
         limits.activation == LoopActivation::none;
}

LoopEpilogue EpilogueRequest::of(const KernelArguments& arguments) const {
  LoopEpilogue result = limits;
  result.bias = memory_of(arguments, bias);
  result.residual = memory_of(arguments, residual);
  return result;
}

bool loops_end_with(const Node& activation) {
  return std::ranges::find(kActivations, activation.operator_name()) != kActivations.end();
}

bool only_loops_end_with(const Node& activation) {
  const std::string& name = activation.operator_name();
  return (name == "relu6" || name == "clip") && activation.output()->data_type() == DataType::fp32;
}

EpilogueRequest read_loop_epilogue(const Node& node, const backend::FusedChain& chain) {
  const DataType type = chain.main->output()->data_type();
  refuse_unless(type == DataType::fp32, "only fp32, not {}", to_string(type));
  const backend::Epilogue found = backend::read_epilogue(node, chain, kActivations);
  EpilogueRequest request{.bias = found.bias, .residual = found.residual, .limits = {}};
  if (found.activation != nullptr) set_activation(request.limits, *found.activation);
  return request;
}

bool needs_loops(const backend::FusedChain& chain) {
  return std::ranges::any_of(chain.steps, [](const backend::FusedChain::Step& step) {
    return step.other == nullptr && only_loops_end_with(*step.node);
  });
}

}  // namespace tessera::cpu
