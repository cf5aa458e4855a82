// What may follow a product in one kernel, and products to follow, as cases for the kernels of every device.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "support/tolerance.h"

namespace tessera::testing {

// What may follow, as a chain of lines from %v0 on; the last value is %y. $T is the type.
struct ContractionChain {
  std::string name;
  std::string lines;
};

inline std::vector<ContractionChain> contraction_chains() {
  std::vector<ContractionChain> result{
      {"bias", "%y = add(%v, %bias)"},
      {"bias_first", "%y = add(%bias, %v)"},
      {"bias_relu", "%s = add(%v, %bias) %y = relu(%s)"},
      {"residual", "%y = add(%v, %residual)"},
      {"bias_residual_relu", "%s = add(%v, %bias) %t = add(%residual, %s) %y = relu(%t)"},
      {"factor_bias_clip",
       "%s = multiply(%v, %factor) %t = add(%s, %bias) %y = clip(%t) {high = 3.0, low = -0.5}"},
      {"activation_then_residual", "%s = add(%v, %bias) %t = silu(%s) %y = add(%t, %residual)"},
  };
  for (const char* activation :
       {"relu6", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "hard_swish", "hard_sigmoid"}) {
    result.push_back({activation, "%s = add(%v, %bias) %y = " + std::string(activation) + "(%s)"});
  }
  result.push_back({"gelu_approximate", "%s = add(%v, %bias) %y = gelu(%s) {approximate = true}"});
  return result;
}

// What makes %v of `shape`, whose last axis has 24 channels; all its inputs are declared in `inputs`.
struct ContractionText {
  std::string name;
  std::string kind;  // of the fused node
  std::string inputs;
  std::string shape;
  std::string main;
  int64_t terms;  // of each sum
};

inline std::vector<ContractionText> matmul_texts() {
  return {{"Matmul", "matmul", "input %x: $T[13, 31], parameter %w: $T[31, 24]", "[13, 24]",
           "%v = matmul(%x, %w)", 31},
          {"MatmulOfThreeAxes", "matmul", "input %x: $T[3, 5, 16], parameter %w: $T[24, 16]", "[3, 5, 24]",
           "%v = matmul(%x, %w) {transpose_b = true}", 16},
          {"BatchedMatmul", "matmul", "input %x: $T[2, 3, 16, 5], input %w: $T[3, 16, 24]", "[2, 3, 5, 24]",
           "%v = matmul(%x, %w) {transpose_a = true}", 16}};
}

inline std::string graph_text(const ContractionText& product, const ContractionChain& chain, DataType type) {
  const std::string name(to_string(type));
  std::string text = "graph g(" + product.inputs +
                     ", parameter %bias: $T[24], parameter %factor: $T[24], input %residual: $T" +
                     product.shape + ") {" + product.main + " " + chain.lines + " output y = %y }";
  for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T")) text.replace(at, 2, name);
  return text;
}

// Of inputs within 1. An activation has a slope of at most 1.1, and its own errors are those of a cluster.
inline Tolerance chain_tolerance(const ContractionText& product, DataType type) {
  Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, type, {.terms = product.terms, .magnitude = 1});
  const Tolerance after =
      tolerance_for(OperatorClass::fused, type, {.magnitude = std::sqrt(static_cast<double>(product.terms))});
  tolerance.absolute = 1.1 * tolerance.absolute + after.absolute;
  tolerance.relative += after.relative;
  return tolerance;
}

}  // namespace tessera::testing
