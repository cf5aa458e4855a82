// The gradient of layer_norm(residual + dropout(branch + bias)), row by row: a row is in the first-level
// cache while the kernel goes over it twice.
#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/normalization/residual_layer_norm_gradient.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tessera/device/common/refusal.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/batch_norm.h"
#include "device/cpu/normalization/layer_norm_rows-inl.h"
#include "device/cpu/runtime/parallel.h"

#ifndef TESSERA_RESIDUAL_LAYER_NORM_GRADIENT
#define TESSERA_RESIDUAL_LAYER_NORM_GRADIENT
namespace tessera::cpu {

// Adds up for each channel the gradients of scale, shift and bias: 3 * channels numbers. Of dsum and dbranch
// one may be null; without the second nothing is dropped.
struct ResidualLayerNormGradientPass {
  RowRange rows;
  DropoutRows dropout;
  const void* dy = nullptr;
  const void* sum = nullptr;
  const void* incoming = nullptr;  // may be null
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  bool centered = true;
  void* dsum = nullptr;
  void* dbranch = nullptr;
  float* summed = nullptr;  // scratch: 3 * channels
  double* sums = nullptr;
};

}  // namespace tessera::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class D>
HWY_INLINE void add_to(D d, float* memory, hn::Vec<D> value) {
  hn::StoreU(hn::Add(hn::LoadU(d, memory), value), d, memory);
}

// With g = dy scale and n = the normalized sum: dsum = inverse (g - mean(g) - n mean(g n)) + incoming.
template <typename T>
void gradients_of_row(const ResidualLayerNormGradientPass& pass, int64_t row) {
  const int64_t n = pass.rows.channels;
  const T* dy = static_cast<const T*>(pass.dy) + row * n;
  const T* sum = static_cast<const T*>(pass.sum) + row * n;
  const T* incoming = pass.incoming == nullptr ? nullptr : static_cast<const T*>(pass.incoming) + row * n;
  T* dbranch = pass.dbranch == nullptr ? nullptr : static_cast<T*>(pass.dbranch) + row * n;
  T* dsum = pass.dsum == nullptr ? dbranch : static_cast<T*>(pass.dsum) + row * n;
  float* dscale = pass.summed;
  float* dshift = dscale + n;
  float* dbias = dshift + n;
  const float inverse = pass.inverse[row];
  const float mean = pass.centered ? pass.mean[row] : 0;
  const auto normalized = [&](auto d, int64_t c) HWY_ATTR {
    return hn::Mul(hn::Sub(load_floats(d, sum + c), hn::Set(d, mean)), hn::Set(d, inverse));
  };
  const TwoSums sums = sums_over(n, [&](auto d, int64_t c, auto& first, auto& second) HWY_ATTR {
    const auto gradient = load_floats(d, dy + c);
    const auto place = normalized(d, c);
    const auto g = hn::Mul(gradient, hn::LoadU(d, pass.scale + c));
    first = hn::Add(first, g);
    second = hn::MulAdd(g, place, second);
    add_to(d, dscale + c, hn::Mul(gradient, place));
    add_to(d, dshift + c, gradient);
  });
  const float mean_g = pass.centered ? static_cast<float>(sums.first / static_cast<double>(n)) : 0;
  const auto mean_gn = static_cast<float>(sums.second / static_cast<double>(n));
  if (dbranch != nullptr) draw(pass.dropout, row * n, n);
  for_each_vector(n, [&](auto d, int64_t c) HWY_ATTR {
    const auto g = hn::Mul(load_floats(d, dy + c), hn::LoadU(d, pass.scale + c));
    const auto rest = hn::NegMulAdd(normalized(d, c), hn::Set(d, mean_gn), hn::Sub(g, hn::Set(d, mean_g)));
    auto total = hn::Mul(rest, hn::Set(d, inverse));
    if (incoming != nullptr) total = hn::Add(total, load_floats(d, incoming + c));
    // Both are rounded as memory holds them: other nodes read the former, and the bias's gradient adds the
    // latter.
    store_floats(total, d, dsum + c);
    if (dbranch == nullptr) return;
    store_floats(dropped(d, pass.dropout, c, load_floats(d, dsum + c)), d, dbranch + c);
    add_to(d, dbias + c, load_floats(d, dbranch + c));
  });
}

template <typename T>
void gradients(const ResidualLayerNormGradientPass& pass) {
  const int64_t count = 3 * pass.rows.channels;
  std::fill_n(pass.sums, count, 0.0);
  for (int64_t begin = pass.rows.begin; begin < pass.rows.end; begin += kSummedRows) {
    std::fill_n(pass.summed, count, 0.0F);
    const int64_t end = std::min(begin + kSummedRows, pass.rows.end);
    for (int64_t row = begin; row < end; ++row) gradients_of_row<T>(pass, row);
    for (int64_t i = 0; i < count; ++i) pass.sums[i] += static_cast<double>(pass.summed[i]);
  }
}

void residual_layer_norm_gradient_rows(const ResidualLayerNormGradientPass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() { gradients<T>(pass); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {
namespace {

HWY_EXPORT(residual_layer_norm_gradient_rows);

class ResidualLayerNormGradient : public Kernel {
 public:
  ResidualLayerNormGradient(const Node& node, const backend::ResidualLayerNormGradientBody& parts)
      : parts_(parts), rows_(node.input(parts_.sum)->type()) {
    if (parts_.dropout.has_value()) uniform_ = workspace_.book<float>(rows_.blocks.parts * rows_.channels);
    summed_ = workspace_.book<float>(3 * rows_.blocks.parts * rows_.channels);
    sums_ = workspace_.book<double>(3 * rows_.blocks.count() * rows_.channels);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  // Both gradients are written after their row has been read for its means, where it is read the last time.
  bool may_overwrite(size_t output, size_t input) const override {
    return (output == parts_.dbranch || output == parts_.dsum) &&
           (input == parts_.dy || input == parts_.sum || input == parts_.incoming);
  }

  void run(const KernelArguments& arguments) override {
    const int64_t channels = rows_.channels;
    float* uniform = uniform_.in(arguments.workspace);
    float* summed = summed_.in(arguments.workspace);
    double* sums = sums_.in(arguments.workspace);
    for_each_block(rows_.blocks.parts, rows_.blocks.count(), Order::forwards,
                   [&](int64_t thread, int64_t block) {
                     HWY_DYNAMIC_DISPATCH(residual_layer_norm_gradient_rows)
                     ({.rows = rows_.block(block),
                       .dropout = dropout_rows(parts_.dropout, arguments, uniform + thread * channels),
                       .dy = arguments.inputs[parts_.dy],
                       .sum = arguments.inputs[parts_.sum],
                       .incoming = optional_input(arguments, parts_.incoming),
                       .scale = static_cast<const float*>(arguments.inputs[parts_.scale]),
                       .mean = static_cast<const float*>(arguments.inputs[parts_.mean]),
                       .inverse = static_cast<const float*>(arguments.inputs[parts_.inverse_deviation]),
                       .centered = parts_.centered,
                       .dsum = optional_output(arguments, parts_.dsum),
                       .dbranch = optional_output(arguments, parts_.dbranch),
                       .summed = summed + thread * 3 * channels,
                       .sums = sums + block * 3 * channels});
                   });
    write_sums(sums, optional_floats(arguments, parts_.dscale));
    write_sums(sums + channels, optional_floats(arguments, parts_.dshift));
    write_sums(sums + 2 * channels, optional_floats(arguments, parts_.dbias));
  }

 private:
  // Of all blocks, in their order.
  void write_sums(const double* sums, float* target) const {
    if (target == nullptr) return;
    for (int64_t c = 0; c < rows_.channels; ++c) {
      double total = 0;
      for (int64_t block = 0; block < rows_.blocks.count(); ++block)
        total += sums[block * 3 * rows_.channels + c];
      target[c] = static_cast<float>(total);
    }
  }

  backend::ResidualLayerNormGradientBody parts_;
  ActivationRows rows_;
  WorkspaceLayout workspace_;
  WorkspaceArray<float> uniform_;
  WorkspaceArray<float> summed_;
  WorkspaceArray<double> sums_;
};

const CpuKernelRegistration kGradient(
    {"fused:residual_layer_norm_gradient", [](const Node&) {
       return std::vector{backend::checked_candidate(
           "loops.residual_layer_norm_gradient", [](const KernelRequest& request) -> KernelMaker {
             return [&node = request.node, parts = backend::read_residual_layer_norm_gradient(request.node)] {
               return std::make_unique<ResidualLayerNormGradient>(node, parts);
             };
           })};
     }});

}  // namespace
}  // namespace tessera::cpu
#endif
