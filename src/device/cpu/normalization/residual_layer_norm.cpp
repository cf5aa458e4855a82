// A row is in the first-level cache while the kernel goes over it several times.
#include "device/cpu/normalization/residual_layer_norm.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/normalization/residual_layer_norm.cpp"
#include <cmath>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tessera/device/common/refusal.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/batch_norm.h"
#include "device/cpu/normalization/layer_norm_rows-inl.h"
#include "device/cpu/runtime/parallel.h"

#ifndef TESSERA_RESIDUAL_LAYER_NORM
#define TESSERA_RESIDUAL_LAYER_NORM
namespace tessera::cpu {

// Activations are [rows, channels] of the range's type, statistics [rows], all by channel is fp32 but the
// bias. Without a residual the branch is normalized as it is; of the other memory bias, shift, sum, mean and
// inverse may be null, too.
struct ResidualLayerNormPass {
  RowRange rows;
  DropoutRows dropout;
  const void* branch = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  double epsilon = 0;
  bool centered = true;
  void* sum = nullptr;
  void* y = nullptr;
  float* mean = nullptr;
  float* inverse = nullptr;
};

}  // namespace tessera::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// residual + dropout(branch + bias) of a row.
template <typename T>
void add_row(const ResidualLayerNormPass& pass, int64_t row, T* sum) {
  const int64_t n = pass.rows.channels;
  const T* branch = static_cast<const T*>(pass.branch) + row * n;
  const T* residual = static_cast<const T*>(pass.residual) + row * n;
  const T* bias = static_cast<const T*>(pass.bias);
  draw(pass.dropout, row * n, n);
  for_each_vector(n, [&](auto d, int64_t c) HWY_ATTR {
    auto value = load_floats(d, branch + c);
    if (bias != nullptr) value = hn::Add(value, load_floats(d, bias + c));
    store_floats(hn::Add(dropped(d, pass.dropout, c, value), load_floats(d, residual + c)), d, sum + c);
  });
}

template <typename T>
void normalize_row(const ResidualLayerNormPass& pass, int64_t row, const T* x, T* y) {
  const int64_t n = pass.rows.channels;
  const auto count = static_cast<double>(n);
  float mean = 0;
  if (pass.centered) {
    const TwoSums sums = sums_over(n, [&](auto d, int64_t c, auto& first, auto&)
                                          HWY_ATTR { first = hn::Add(first, load_floats(d, x + c)); });
    mean = static_cast<float>(sums.first / count);
  }
  const double variance = sums_over(n,
                                    [&](auto d, int64_t c, auto& first, auto&) HWY_ATTR {
                                      const auto deviation = hn::Sub(load_floats(d, x + c), hn::Set(d, mean));
                                      first = hn::MulAdd(deviation, deviation, first);
                                    })
                              .first /
                          count;
  const auto inverse = static_cast<float>(1 / std::sqrt(variance + pass.epsilon));
  for_each_vector(n, [&](auto d, int64_t c) HWY_ATTR {
    const auto normalized = hn::Mul(hn::Sub(load_floats(d, x + c), hn::Set(d, mean)), hn::Set(d, inverse));
    const auto shift = pass.shift == nullptr ? hn::Zero(d) : hn::LoadU(d, pass.shift + c);
    store_floats(hn::MulAdd(normalized, hn::LoadU(d, pass.scale + c), shift), d, y + c);
  });
  if (pass.mean != nullptr) pass.mean[row] = mean;
  if (pass.inverse != nullptr) pass.inverse[row] = inverse;
}

template <typename T>
void normalize(const ResidualLayerNormPass& pass) {
  const int64_t n = pass.rows.channels;
  for (int64_t row = pass.rows.begin; row < pass.rows.end; ++row) {
    T* y = static_cast<T*>(pass.y) + row * n;
    if (pass.residual == nullptr) {
      normalize_row(pass, row, static_cast<const T*>(pass.branch) + row * n, y);
      continue;
    }
    // What the gradient will read is what is normalized: the rounded sum.
    T* sum = pass.sum == nullptr ? y : static_cast<T*>(pass.sum) + row * n;
    add_row(pass, row, sum);
    normalize_row<T>(pass, row, sum, y);
  }
}

void residual_layer_norm_rows(const ResidualLayerNormPass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() { normalize<T>(pass); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {
namespace {

HWY_EXPORT(residual_layer_norm_rows);

class ResidualLayerNorm : public Kernel {
 public:
  ResidualLayerNorm(const Node& node, const backend::ResidualLayerNormBody& parts)
      : parts_(parts), rows_(node.input(parts_.branch)->type()) {
    if (parts_.dropout.has_value()) uniform_ = workspace_.book<float>(rows_.blocks.parts * rows_.channels);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  // The sum and y are written where branch and residual have been read.
  bool may_overwrite(size_t output, size_t input) const override {
    return (output == parts_.y || output == parts_.sum) &&
           (input == parts_.branch || input == parts_.residual);
  }

  void run(const KernelArguments& arguments) override {
    for_each_block(rows_.blocks.parts, rows_.blocks.count(), Order::forwards,
                   [&](int64_t thread, int64_t block) {
                     HWY_DYNAMIC_DISPATCH(residual_layer_norm_rows)
                     ({.rows = rows_.block(block),
                       .dropout = dropout_rows(parts_.dropout, arguments,
                                               uniform_.in(arguments.workspace) + thread * rows_.channels),
                       .branch = arguments.inputs[parts_.branch],
                       .bias = optional_input(arguments, parts_.bias),
                       .residual = optional_input(arguments, parts_.residual),
                       .scale = static_cast<const float*>(arguments.inputs[parts_.scale]),
                       .shift = static_cast<const float*>(optional_input(arguments, parts_.shift)),
                       .epsilon = parts_.epsilon,
                       .centered = parts_.centered,
                       .sum = optional_output(arguments, parts_.sum),
                       .y = arguments.outputs[parts_.y],
                       .mean = optional_floats(arguments, parts_.mean),
                       .inverse = optional_floats(arguments, parts_.inverse_deviation)});
                   });
  }

 private:
  backend::ResidualLayerNormBody parts_;
  ActivationRows rows_;
  WorkspaceLayout workspace_;
  WorkspaceArray<float> uniform_;
};

const CpuKernelRegistration kForward({"fused:residual_layer_norm", [](const Node&) {
                                        return std::vector{layer_norm_candidate("loops.residual_layer_norm")};
                                      }});

}  // namespace

bool has_layer_norm_kernel(const Node& norm) {
  return backend::unless_refused([&] { return backend::read_residual_layer_norm(norm); }).has_value();
}

KernelCandidate layer_norm_candidate(const std::string& name) {
  return backend::checked_candidate(name, [](const KernelRequest& request) -> KernelMaker {
    return [&node = request.node, parts = backend::read_residual_layer_norm(request.node)] {
      return std::make_unique<ResidualLayerNorm>(node, parts);
    };
  });
}

}  // namespace tessera::cpu
#endif
