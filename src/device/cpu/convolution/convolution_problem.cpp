#include "device/cpu/convolution/convolution_problem.h"

#include <algorithm>

#include "tessera/device/common/channel_order.h"
#include "tessera/device/common/refusal.h"

namespace tessera::cpu {

using backend::channels_last_strides;
using backend::channels_second;
using dnnl::memory;

namespace {

bool all_are(int64_t wanted, const memory::dims& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

// Loops run along the innermost axis of an image. One of a single element, as where a convolution along one
// axis is written as one along two, goes before the others: the elements lie in the same order.
void put_innermost_first_while_single(ConvolutionProblem& problem) {
  const std::ptrdiff_t axes = std::ssize(problem.source) - 2;
  const auto is_single = [&] {
    return problem.source.back() == 1 && problem.weight.back() == 1 && problem.destination.back() == 1;
  };
  const auto rotate = [axes](memory::dims& values) {
    std::rotate(values.end() - axes, values.end() - 1, values.end());
  };
  for (std::ptrdiff_t i = 1; i < axes && is_single(); ++i) {
    for (memory::dims* values : {&problem.source, &problem.weight, &problem.destination, &problem.strides,
                                 &problem.dilations, &problem.padding_low, &problem.padding_high})
      rotate(*values);
  }
}

}  // namespace

bool ConvolutionProblem::has_window() const {
  const int64_t spatial_axes = static_cast<int64_t>(source.size()) - 2;
  return !all_are(1, {weight.end() - spatial_axes, weight.end()});
}

bool ConvolutionProblem::is_pointwise() const {
  return groups == 1 && !has_window() && all_are(1, strides) && all_are(0, padding_low) &&
         all_are(0, padding_high);
}

bool ConvolutionProblem::is_depthwise() const {
  return groups > 1 && groups == input_channels() && groups == output_channels();
}

bool ConvolutionProblem::misses_image() const {
  const size_t axes = source.size() - 2;
  const auto misses = [&](size_t axis) {
    const int64_t elements = weight[weight.size() - axes + axis];
    for (int64_t place = 0; place < destination[2 + axis]; ++place) {
      for (int64_t element = 0; element < elements; ++element) {
        const int64_t at = place * strides[axis] - padding_low[axis] + element * (dilations[axis] + 1);
        if (at >= 0 && at < source[2 + axis]) return false;
      }
    }
    return true;
  };
  for (size_t axis = 0; axis < axes; ++axis) {
    if (misses(axis)) return true;
  }
  return false;
}

int64_t ConvolutionProblem::pixels() const {
  int64_t count = destination[0];
  for (size_t axis = 2; axis < destination.size(); ++axis) count *= destination[axis];
  return count;
}

memory::desc channels_last(const memory::dims& dims, memory::data_type type) {
  return strided(dims, type, channels_last_strides(dims));
}

memory::desc ConvolutionProblem::source_stored(memory::data_type type) const {
  return channels_last(source, type);
}

memory::desc ConvolutionProblem::destination_stored(memory::data_type type) const {
  return channels_last(destination, type);
}

memory::desc ConvolutionProblem::weight_stored(memory::data_type type) const {
  if (groups == 1) return channels_last(weight, type);
  // [G, K/G, C/G, spatial...] over [K, spatial..., C/G]
  const memory::dims one_group(weight.begin() + 1, weight.end());
  memory::dims strides = channels_last_strides(one_group);
  strides.insert(strides.begin(), strides[0] * weight[1]);
  return strided(weight, type, strides);
}

void refuse_beside_image(const ConvolutionProblem& problem, memory::data_type type) {
  backend::refuse_unless(
      type != memory::data_type::bf16 || !problem.misses_image(),
      "oneDNN 3.2 ends the program for windows in bf16 that miss the image, where it has AMX");
}

ConvolutionProblem make_convolution_problem(const Shape& source, const Shape& weight,
                                            const Shape& destination, const Attributes& attributes) {
  ConvolutionProblem problem;
  for (const Shape* shape : {&source, &weight, &destination}) {
    refuse_unless(element_count(*shape) > 0, "a tensor without elements");
    refuse_unless(shape->size() >= 3 && shape->size() <= 5, "{} spatial axes", shape->size() - 2);
  }
  problem.source = channels_second(source);
  problem.weight = channels_second(weight);
  problem.destination = channels_second(destination);
  problem.strides = attributes.integers("strides");
  problem.padding_low = attributes.integers("padding_low");
  problem.padding_high = attributes.integers("padding_high");
  problem.groups = attributes.integer("groups");
  for (int64_t dilation : attributes.integers("dilations")) problem.dilations.push_back(dilation - 1);
  for (int64_t padding : problem.padding_low) refuse_unless(padding >= 0, "negative padding");
  for (int64_t padding : problem.padding_high) refuse_unless(padding >= 0, "negative padding");
  if (problem.groups > 1) {
    problem.weight[0] /= problem.groups;
    problem.weight.insert(problem.weight.begin(), problem.groups);
  }
  put_innermost_first_while_single(problem);
  return problem;
}

ConvolutionProblem problem_of(const Node& convolution) {
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  return make_convolution_problem(shape(convolution.input(0)), shape(convolution.input(1)),
                                  shape(convolution.output()), convolution.attributes());
}

}  // namespace tessera::cpu
