#include "device/cuda/convolution/epilogue_activation.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {
namespace {

// Of 16 bits, but for relu.
std::string expression_of(const Node& activation) {
  const std::string& name = activation.operator_name();
  if (name == "relu") return "op_relu(x)";
  if (name == "relu6") return "op_minimum(op_relu(x), 6.0f)";
  if (name == "silu") return "x * sigmoid_in_half(x)";
  if (name == "sigmoid") return "sigmoid_in_half(x)";
  backend::refuse_unless(name == "clip", "the activation {}", name);
  return fmt::format("op_minimum(op_maximum(x, {}), {})", float_literal(activation.attributes().real("low")),
                     float_literal(activation.attributes().real("high")));
}

}  // namespace

bool ends_convolutions(const Node& activation) {
  const std::string& name = activation.operator_name();
  if (name == "relu") return true;
  return is_half(activation.output()->data_type()) &&
         std::ranges::find(kConvolutionActivations, name) != kConvolutionActivations.end();
}

std::string ending_text(const Node* activation) {
  return fmt::format("  static __device__ float end(float x) {{ return {}; }}\n",
                     activation == nullptr ? "x" : expression_of(*activation));
}

}  // namespace tessera::cuda
