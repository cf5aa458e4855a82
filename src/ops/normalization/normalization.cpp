#include "ops/normalization/normalization.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::ops {
namespace {

NormalizationGroups empty_groups(const Shape& x, int64_t statistics, int64_t channels) {
  const auto size = static_cast<size_t>(element_count(x));
  return {std::vector<int64_t>(size), std::vector<int64_t>(size), statistics, channels};
}

}  // namespace

DataType statistics_type(DataType x) {
  return is_half(x) ? DataType::fp32 : x;
}

NormalizationGroups batch_norm_groups(const Shape& x) {
  NormalizationGroups groups = empty_groups(x, x.back(), x.back());
  for (size_t i = 0; i < groups.statistic.size(); ++i)
    groups.statistic[i] = groups.channel[i] = static_cast<int64_t>(i) % x.back();
  return groups;
}

NormalizationGroups layer_norm_groups(const Shape& x, int64_t axes) {
  const int64_t row = element_count(Shape(x.end() - axes, x.end()));
  NormalizationGroups groups = empty_groups(x, element_count(Shape(x.begin(), x.end() - axes)), row);
  for (size_t i = 0; i < groups.statistic.size(); ++i) {
    groups.statistic[i] = static_cast<int64_t>(i) / row;
    groups.channel[i] = static_cast<int64_t>(i) % row;
  }
  return groups;
}

NormalizationGroups group_norm_groups(const Shape& x, int64_t count) {
  const int64_t channels = x.back();
  const int64_t image = element_count(x) / std::max<int64_t>(x[0], 1);
  NormalizationGroups groups = empty_groups(x, x[0] * count, channels);
  for (size_t i = 0; i < groups.statistic.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    groups.channel[i] = index % channels;
    groups.statistic[i] = index / image * count + groups.channel[i] / (channels / count);
  }
  return groups;
}

void run_normalization(const ReferenceCall& call, const NormalizationGroups& groups, NormalizationForm form) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const std::vector<double> scale = call.inputs[1]->to_doubles();
  const Tensor* shift = call.operand(2);
  const std::vector<double> bias =
      shift != nullptr ? shift->to_doubles() : std::vector<double>(scale.size(), 0);
  const double epsilon = call.attributes().real("epsilon");
  const double count = groups.count();
  // The mean of nothing is NaN, as reduce_mean has it.
  const double start = x.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
  std::vector<double> mean(static_cast<size_t>(groups.statistics), form.centered ? start : 0);
  std::vector<double> variance(mean.size(), start);
  for (size_t i = 0; form.centered && i < x.size(); ++i)
    mean[static_cast<size_t>(groups.statistic[i])] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto s = static_cast<size_t>(groups.statistic[i]);
    variance[s] += (x[i] - mean[s]) * (x[i] - mean[s]) / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto s = static_cast<size_t>(groups.statistic[i]);
    const auto c = static_cast<size_t>(groups.channel[i]);
    const double normalized = (x[i] - mean[s]) / std::sqrt(variance[s] + epsilon);
    call.outputs[0]->set(static_cast<int64_t>(i), normalized * scale[c] + bias[c]);
  }
  for (size_t s = 0; s < mean.size(); ++s) {
    const auto index = static_cast<int64_t>(s);
    call.outputs[1]->set(index, mean[s]);
    call.outputs[2]->set(index, form.inverse_deviation ? 1 / std::sqrt(variance[s] + epsilon) : variance[s]);
  }
}

void run_normalization_gradient(const ReferenceCall& call, const NormalizationGroups& groups,
                                const std::vector<double>& mean, const std::vector<double>& inverse_deviation,
                                bool centered) {
  const std::vector<double> dy = call.inputs[0]->to_doubles();
  const std::vector<double> x = call.inputs[1]->to_doubles();
  const std::vector<double> scale = call.inputs[2]->to_doubles();
  const double count = groups.count();
  const auto normalized = [&](size_t i) {
    const auto s = static_cast<size_t>(groups.statistic[i]);
    return (x[i] - (centered ? mean[s] : 0)) * inverse_deviation[s];
  };
  std::vector<double> mean_g(mean.size(), 0);
  std::vector<double> mean_gn(mean.size(), 0);
  std::vector<double> scale_gradient(static_cast<size_t>(groups.channels), 0);
  std::vector<double> bias_gradient(scale_gradient.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto s = static_cast<size_t>(groups.statistic[i]);
    const auto c = static_cast<size_t>(groups.channel[i]);
    if (centered) mean_g[s] += dy[i] * scale[c] / count;
    mean_gn[s] += dy[i] * scale[c] * normalized(i) / count;
    scale_gradient[c] += dy[i] * normalized(i);
    bias_gradient[c] += dy[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto s = static_cast<size_t>(groups.statistic[i]);
    const auto c = static_cast<size_t>(groups.channel[i]);
    const double dx = inverse_deviation[s] * (dy[i] * scale[c] - mean_g[s] - normalized(i) * mean_gn[s]);
    call.outputs[0]->set(static_cast<int64_t>(i), dx);
  }
  for (size_t c = 0; c < scale_gradient.size(); ++c) {
    call.outputs[1]->set(static_cast<int64_t>(c), scale_gradient[c]);
    call.outputs[2]->set(static_cast<int64_t>(c), bias_gradient[c]);
  }
}

AttributeSpecification epsilon_attribute() {
  return {"epsilon", AttributeKind::real, 1e-5, "Added to the variance under the root."};
}

void check_scale(const InferenceCall& call, const TensorType& x, const TensorType& scale,
                 const SymbolicShape& channels, const std::string& meaning) {
  const DataType type = statistics_type(x.data_type);
  call.require(scale.shape == channels, "scale must be " + to_string(channels) + ", " + meaning);
  call.require(scale.data_type == type, "beside a result of " + std::string(to_string(x.data_type)) +
                                            " scale and bias must be " + std::string(to_string(type)));
}

Value* through_statistics(Value* x, const StatisticsGradient& statistics, const SymbolicShape& elements) {
  if (statistics.mean_gradient == nullptr && statistics.variance_gradient == nullptr) return nullptr;
  Value* wide = cast(x, statistics.mean->data_type());
  Value* count = count_elements(x->graph(), elements, wide->data_type());
  Value* sum = nullptr;
  if (statistics.mean_gradient != nullptr)
    sum = broadcast_to(divide(statistics.mean_gradient, count), x->shape());
  if (statistics.variance_gradient != nullptr) {
    Value* variance_term = multiply(divide(statistics.variance_gradient, count), 2);
    sum = sum_of(sum, multiply(subtract(wide, statistics.mean), variance_term));
  }
  return cast(sum, x->data_type());
}

Value* variance_gradient(Value* inverse_deviation, Value* inverse_deviation_gradient) {
  if (inverse_deviation_gradient == nullptr) return nullptr;
  Value* cube = multiply(square(inverse_deviation), inverse_deviation);
  return multiply(multiply(cube, -0.5), inverse_deviation_gradient);
}

Value* sum_of(Value* a, Value* b) {
  if (a == nullptr) return b;
  return b == nullptr ? a : add(a, b);
}

}  // namespace tessera::ops
