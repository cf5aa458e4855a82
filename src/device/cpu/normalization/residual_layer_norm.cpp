// layer_norm(residual + dropout(branch + bias)) and its gradient, row by row: a row is in the first-level
// cache while the kernel goes over it several times.
#include "tessera/device/common/residual_layer_norm.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/normalization/residual_layer_norm.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/batch_norm.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/vector_memory-inl.h"

#ifndef TESSERA_RESIDUAL_LAYER_NORM
#define TESSERA_RESIDUAL_LAYER_NORM
namespace tessera::cpu {

// What dropout does to a range of rows: numbers are drawn into `uniform`, as many as a row has elements.
struct DropoutRows {
  uint64_t seed = 0;
  uint64_t stream = 0;
  float rate = 0;
  float factor = 1;
  float* uniform = nullptr;
};

// Activations are [rows, channels] of the range's type, statistics [rows], all by channel is fp32 but the
// bias.
struct ResidualLayerNormPass {
  RowRange rows;
  DropoutRows dropout;
  const void* branch = nullptr;
  const void* bias = nullptr;  // may be null, as may sum, mean and inverse
  const void* residual = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  double epsilon = 0;
  void* sum = nullptr;
  void* y = nullptr;
  float* mean = nullptr;
  float* inverse = nullptr;
};

// Adds up for each channel the gradients of scale, shift and bias: 3 * channels numbers.
struct ResidualLayerNormGradientPass {
  RowRange rows;
  DropoutRows dropout;
  const void* dy = nullptr;
  const void* sum = nullptr;
  const void* incoming = nullptr;  // may be null, as may dsum
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
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

// Vectors that enter a partial sum before it goes into a double.
constexpr int64_t kRun = 32;

struct TwoSums {
  double first = 0;
  double second = 0;
};

template <class D>
HWY_INLINE double lanes_added(D d, hn::Vec<D> v) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  double sum = 0;
  for (size_t k = 0; k < hn::Lanes(d); ++k) sum += static_cast<double>(lanes[k]);
  return sum;
}

// add(d, c, first, second) adds what the elements from c on contribute.
template <class Add>
HWY_INLINE TwoSums sums_over(int64_t count, Add&& add) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  TwoSums result;
  int64_t c = 0;
  while (c + lanes <= count) {
    auto first = hn::Zero(d);
    auto second = hn::Zero(d);
    for (int64_t k = 0; k < kRun && c + lanes <= count; ++k, c += lanes) add(d, c, first, second);
    result.first += lanes_added(d, first);
    result.second += lanes_added(d, second);
  }
  for (; c < count; ++c) {
    auto first = hn::Zero(one);
    auto second = hn::Zero(one);
    add(one, c, first, second);
    result.first += static_cast<double>(hn::GetLane(first));
    result.second += static_cast<double>(hn::GetLane(second));
  }
  return result;
}

HWY_INLINE void draw(const DropoutRows& dropout, int64_t first, int64_t count) {
  constexpr int kBits = 24;  // random_uniform's in fp32
  random_uniform(dropout.seed, dropout.stream, kBits, static_cast<uint64_t>(first), dropout.uniform, count);
}

template <class D>
HWY_INLINE hn::Vec<D> dropped(D d, const DropoutRows& dropout, int64_t c, hn::Vec<D> value) {
  const auto kept = hn::Ge(hn::LoadU(d, dropout.uniform + c), hn::Set(d, dropout.rate));
  return hn::IfThenElseZero(kept, hn::Mul(value, hn::Set(d, dropout.factor)));
}

template <class D>
HWY_INLINE void add_to(D d, float* memory, hn::Vec<D> value) {
  hn::StoreU(hn::Add(hn::LoadU(d, memory), value), d, memory);
}

template <typename T>
void normalize_sums(const ResidualLayerNormPass& pass) {
  const int64_t n = pass.rows.channels;
  for (int64_t row = pass.rows.begin; row < pass.rows.end; ++row) {
    const T* branch = static_cast<const T*>(pass.branch) + row * n;
    const T* residual = static_cast<const T*>(pass.residual) + row * n;
    const T* bias = static_cast<const T*>(pass.bias);
    T* y = static_cast<T*>(pass.y) + row * n;
    // What the gradient will read is what is normalized: the rounded sum.
    T* sum = pass.sum == nullptr ? y : static_cast<T*>(pass.sum) + row * n;
    draw(pass.dropout, row * n, n);
    for_each_vector(n, [&](auto d, int64_t c) HWY_ATTR {
      auto value = load_floats(d, branch + c);
      if (bias != nullptr) value = hn::Add(value, load_floats(d, bias + c));
      store_floats(hn::Add(dropped(d, pass.dropout, c, value), load_floats(d, residual + c)), d, sum + c);
    });
    const auto count = static_cast<double>(n);
    const auto mean =
        static_cast<float>(sums_over(n, [&](auto d, int64_t c, auto& first, auto&)
                                            HWY_ATTR { first = hn::Add(first, load_floats(d, sum + c)); })
                               .first /
                           count);
    const double variance = sums_over(n,
                                      [&](auto d, int64_t c, auto& first, auto&) HWY_ATTR {
                                        const auto deviation =
                                            hn::Sub(load_floats(d, sum + c), hn::Set(d, mean));
                                        first = hn::MulAdd(deviation, deviation, first);
                                      })
                                .first /
                            count;
    const auto inverse = static_cast<float>(1 / std::sqrt(variance + pass.epsilon));
    for_each_vector(n, [&](auto d, int64_t c) HWY_ATTR {
      const auto normalized =
          hn::Mul(hn::Sub(load_floats(d, sum + c), hn::Set(d, mean)), hn::Set(d, inverse));
      store_floats(hn::MulAdd(normalized, hn::LoadU(d, pass.scale + c), hn::LoadU(d, pass.shift + c)), d,
                   y + c);
    });
    if (pass.mean != nullptr) pass.mean[row] = mean;
    if (pass.inverse != nullptr) pass.inverse[row] = inverse;
  }
}

// With g = dy scale and n = the normalized sum: dsum = inverse (g - mean(g) - n mean(g n)) + incoming.
template <typename T>
void gradients_of_row(const ResidualLayerNormGradientPass& pass, int64_t row) {
  const int64_t n = pass.rows.channels;
  const T* dy = static_cast<const T*>(pass.dy) + row * n;
  const T* sum = static_cast<const T*>(pass.sum) + row * n;
  const T* incoming = pass.incoming == nullptr ? nullptr : static_cast<const T*>(pass.incoming) + row * n;
  T* dbranch = static_cast<T*>(pass.dbranch) + row * n;
  T* dsum = pass.dsum == nullptr ? dbranch : static_cast<T*>(pass.dsum) + row * n;
  float* dscale = pass.summed;
  float* dshift = dscale + n;
  float* dbias = dshift + n;
  const float inverse = pass.inverse[row];
  const auto normalized = [&](auto d, int64_t c) HWY_ATTR {
    return hn::Mul(hn::Sub(load_floats(d, sum + c), hn::Set(d, pass.mean[row])), hn::Set(d, inverse));
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
  const auto mean_g = static_cast<float>(sums.first / static_cast<double>(n));
  const auto mean_gn = static_cast<float>(sums.second / static_cast<double>(n));
  draw(pass.dropout, row * n, n);
  for_each_vector(n, [&](auto d, int64_t c) HWY_ATTR {
    const auto g = hn::Mul(load_floats(d, dy + c), hn::LoadU(d, pass.scale + c));
    const auto rest = hn::NegMulAdd(normalized(d, c), hn::Set(d, mean_gn), hn::Sub(g, hn::Set(d, mean_g)));
    auto total = hn::Mul(rest, hn::Set(d, inverse));
    if (incoming != nullptr) total = hn::Add(total, load_floats(d, incoming + c));
    // Both are rounded as memory holds them: other nodes read the former, and the bias's gradient adds the
    // latter.
    store_floats(total, d, dsum + c);
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

void residual_layer_norm_rows(const ResidualLayerNormPass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() { normalize_sums<T>(pass); });
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

HWY_EXPORT(residual_layer_norm_rows);
HWY_EXPORT(residual_layer_norm_gradient_rows);

template <typename T>
const T* input(const KernelArguments& arguments, size_t index) {
  return static_cast<const T*>(arguments.inputs[index]);
}
const void* input(const KernelArguments& arguments, std::optional<size_t> index) {
  return index.has_value() ? arguments.inputs[*index] : nullptr;
}
void* output(const KernelArguments& arguments, std::optional<size_t> index) {
  return index.has_value() ? arguments.outputs[*index] : nullptr;
}
float* floats(const KernelArguments& arguments, std::optional<size_t> index) {
  return static_cast<float*>(output(arguments, index));
}

DropoutRows dropout_rows(const backend::DropoutBody& body, const KernelArguments& arguments, float* uniform) {
  const auto* counter = input<int64_t>(arguments, body.counter);
  return {.seed = static_cast<uint64_t>(counter[0]),
          .stream = step_stream(body.stream, counter[1]),
          .rate = body.rate,
          .factor = body.factor,
          .uniform = uniform};
}

class ResidualLayerNorm : public Kernel {
 public:
  ResidualLayerNorm(const Node& node, const backend::ResidualLayerNormBody& parts)
      : parts_(parts), rows_(node.input(parts_.branch)->type()) {
    uniform_ = workspace_.book<float>(rows_.blocks.parts * rows_.channels);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  // The sum and y are written where branch and residual have been read.
  bool may_overwrite(size_t output, size_t input) const override {
    return (output == parts_.y || output == parts_.sum) &&
           (input == parts_.branch || input == parts_.residual);
  }

  void run(const KernelArguments& arguments) override {
    float* uniform = uniform_.in(arguments.workspace);
    for_each_block(rows_.blocks.parts, rows_.blocks.count(), Order::forwards,
                   [&](int64_t thread, int64_t block) {
                     HWY_DYNAMIC_DISPATCH(residual_layer_norm_rows)
                     ({.rows = rows_.block(block),
                       .dropout = dropout_rows(*parts_.dropout, arguments, uniform + thread * rows_.channels),
                       .branch = arguments.inputs[parts_.branch],
                       .bias = input(arguments, parts_.bias),
                       .residual = arguments.inputs[*parts_.residual],
                       .scale = input<float>(arguments, parts_.scale),
                       .shift = input<float>(arguments, parts_.shift),
                       .epsilon = parts_.epsilon,
                       .sum = output(arguments, parts_.sum),
                       .y = arguments.outputs[parts_.y],
                       .mean = floats(arguments, parts_.mean),
                       .inverse = floats(arguments, parts_.inverse_deviation)});
                   });
  }

 private:
  backend::ResidualLayerNormBody parts_;
  ActivationRows rows_;
  WorkspaceLayout workspace_;
  WorkspaceArray<float> uniform_;
};

class ResidualLayerNormGradient : public Kernel {
 public:
  ResidualLayerNormGradient(const Node& node, const backend::ResidualLayerNormGradientBody& parts)
      : parts_(parts), rows_(node.input(parts_.sum)->type()) {
    uniform_ = workspace_.book<float>(rows_.blocks.parts * rows_.channels);
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
                       .incoming = input(arguments, parts_.incoming),
                       .scale = input<float>(arguments, parts_.scale),
                       .mean = input<float>(arguments, parts_.mean),
                       .inverse = input<float>(arguments, parts_.inverse_deviation),
                       .dsum = output(arguments, parts_.dsum),
                       .dbranch = arguments.outputs[parts_.dbranch],
                       .summed = summed + thread * 3 * channels,
                       .sums = sums + block * 3 * channels});
                   });
    write_sums(sums, floats(arguments, parts_.dscale));
    write_sums(sums + channels, floats(arguments, parts_.dshift));
    write_sums(sums + 2 * channels, floats(arguments, parts_.dbias));
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

const CpuKernelRegistration kForward(
    {"fused:residual_layer_norm", [](const Node&) {
       return std::vector{backend::checked_candidate(
           "loops.residual_layer_norm", [](const KernelRequest& request) -> KernelMaker {
             return [&node = request.node, parts = backend::read_residual_layer_norm(request.node)] {
               return std::make_unique<ResidualLayerNorm>(node, parts);
             };
           })};
     }});

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
