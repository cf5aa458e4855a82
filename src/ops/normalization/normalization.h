// What batch, layer and group normalization share. They differ only in which elements have one mean and which
// have one scale; with that in two tables the arithmetic is the same.
#pragma once

#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {

// The type of scale, bias, mean and variance beside x: fp32 for 16-bit types.
DataType statistics_type(DataType x);
// Types that inputs of that kind may have.
inline constexpr TypeSet kStatisticsTypes{DataType::fp32, DataType::fp64};

// For every element of x, in row-major order.
struct NormalizationGroups {
  std::vector<int64_t> statistic;  // which mean and variance
  std::vector<int64_t> channel;    // which scale and bias
  int64_t statistics = 0;
  int64_t channels = 0;
  double count() const { return static_cast<double>(statistic.size()) / static_cast<double>(statistics); }
};
NormalizationGroups batch_norm_groups(const Shape& x);
NormalizationGroups layer_norm_groups(const Shape& x, int64_t axes);
NormalizationGroups group_norm_groups(const Shape& x, int64_t count);

// Reads x, scale and, where there is one, bias. Writes y, mean, and the biased variance or 1 / sqrt(variance
// + epsilon). Not centered, the mean is 0.
struct NormalizationForm {
  bool inverse_deviation = true;
  bool centered = true;
};
void run_normalization(const ReferenceCall& call, const NormalizationGroups& groups, NormalizationForm form);

// Reads dy, x, scale and the statistics; writes dx, dscale, dbias. With n = (x - mean) r and g = dy scale:
// dx = r (g - mean(g) - n mean(g n)), dscale = sum(dy n), dbias = sum(dy) (Ioffe and Szegedy 2015,
// arXiv:1502.03167). Not centered, n = x r and without mean(g).
void run_normalization_gradient(const ReferenceCall& call, const NormalizationGroups& groups,
                                const std::vector<double>& mean, const std::vector<double>& inverse_deviation,
                                bool centered = true);

AttributeSpecification epsilon_attribute();

// Rules: scale and bias have the shape `channels` and the statistics' type.
void check_scale(const InferenceCall& call, const TensorType& x, const TensorType& scale,
                 const SymbolicShape& channels, const std::string& meaning);

// A gradient that flows into the mean and the biased variance of `elements` elements of x each, on to x:
// d mean / dx = 1/M, d variance / dx = 2 (x - mean) / M. Statistics and gradients broadcast against x and
// have their own type; either gradient may be null. Null when both are.
struct StatisticsGradient {
  Value* mean;
  Value* mean_gradient;
  Value* variance_gradient;
};
Value* through_statistics(Value* x, const StatisticsGradient& statistics, const SymbolicShape& elements);

// The gradient of the variance from that of r = 1 / sqrt(variance + epsilon); null for null.
Value* variance_gradient(Value* inverse_deviation, Value* inverse_deviation_gradient);

// The sum of two gradients of which either may be null.
Value* sum_of(Value* a, Value* b);

}  // namespace tessera::ops
