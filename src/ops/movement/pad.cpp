#include <algorithm>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

// The extent once `interior` elements stand between neighbors.
Dimension spread(const Dimension& extent, int64_t interior) {
  return extent == Dimension(0) ? extent : extent + (extent - 1) * interior;
}

std::vector<TensorType> infer_pad(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  for (const char* name : {"low", "high", "interior"}) {
    const size_t given = call.attributes.integers(name).size();
    call.require(given == x.shape.size(), std::string(name) + " must have one number for each axis of " +
                                              to_string(x.shape) + ", got " + std::to_string(given));
  }
  TensorType y{x.data_type, {}};
  for (size_t axis = 0; axis < x.shape.size(); ++axis) {
    const int64_t interior = call.attributes.integers("interior")[axis];
    call.require(interior >= 0 && interior <= kMaximumTensorBytes,
                 "interior may not be negative or above " + std::to_string(kMaximumTensorBytes));
    for (const char* name : {"low", "high"}) {
      const int64_t amount = call.attributes.integers(name)[axis];
      call.require(amount >= -kMaximumTensorBytes && amount <= kMaximumTensorBytes,
                   std::string(name) + " is more than any tensor has: " + std::to_string(amount));
    }
    const Dimension extent = spread(x.shape[axis], interior) + call.attributes.integers("low")[axis] +
                             call.attributes.integers("high")[axis];
    call.require(!extent.is_static() || extent.value() >= 0,
                 "axis " + std::to_string(axis) + " is cropped to less than nothing");
    y.shape.push_back(extent);
  }
  return {y};
}

int64_t ceil_quotient(int64_t value, int64_t divisor) {
  return value <= 0 ? 0 : (value + divisor - 1) / divisor;
}

void reference_pad(const ReferenceCall& call) {
  const Tensor& input = *call.inputs[0];
  Tensor& output = *call.outputs[0];
  const double value = call.attributes().real("value");
  if (value != 0) output = Tensor::full(output.data_type(), output.shape(), value);
  StridedView from{0, row_major_strides(input.shape())};
  StridedView to{0, row_major_strides(output.shape())};
  Shape kept;
  for (size_t axis = 0; axis < input.shape().size(); ++axis) {
    const int64_t low = call.attributes().integers("low")[axis];
    const int64_t step = input.shape()[axis] > 1 ? call.attributes().integers("interior")[axis] + 1 : 1;
    // Input element i lands at low + i * step; those outside the output are cropped.
    const int64_t first = ceil_quotient(-low, step);
    const int64_t last = std::min(input.shape()[axis], ceil_quotient(output.shape()[axis] - low, step));
    kept.push_back(std::max<int64_t>(last - first, 0));
    if (kept.back() == 0) continue;
    from.offset += first * from.strides[axis];
    to.offset += (low + first * step) * to.strides[axis];
    to.strides[axis] *= step;
  }
  copy_elements(input, from, output, to, kept);
}

// Pads where this one cropped and crops where it padded, then picks the elements between the interior ones.
std::vector<Value*> gradient_pad(const GradientCall& call) {
  Value* dx = call.gradient();
  std::vector<int64_t> low = call.node.attributes().integers("low");
  std::vector<int64_t> high = call.node.attributes().integers("high");
  std::vector<int64_t> strides = call.node.attributes().integers("interior");
  const size_t rank = low.size();
  for (int64_t& stride : strides) ++stride;
  const auto negative = [](int64_t amount) { return amount < 0; };
  if (std::any_of(low.begin(), low.end(), negative) || std::any_of(high.begin(), high.end(), negative)) {
    for (int64_t& amount : low) amount = -amount;
    for (int64_t& amount : high) amount = -amount;
    dx = pad(dx, low, high);
    low.assign(rank, 0);
    high.assign(rank, 0);
  }
  std::vector<int64_t> limits;
  for (int64_t amount : high) limits.push_back(amount == 0 ? kWholeAxis : -amount);
  return {slice(dx, low, limits, strides)};
}

using Integers = std::initializer_list<int64_t>;

OperatorExample example_pad(Shape shape, Integers low, Integers high, Integers interior, double value = 0,
                            DataType type = DataType::fp32) {
  return {.inputs = {{std::move(shape), -2, 2, type}},
          .attributes = {{"low", low}, {"high", high}, {"interior", interior}, {"value", value}}};
}

AttributeSpecification list(const std::string& name, const std::string& documentation) {
  return {.name = name, .kind = AttributeKind::integers, .default_value = {}, .documentation = documentation};
}

OperatorSchema schema_pad() {
  OperatorSchema schema;
  schema.name = "pad";
  schema.documentation =
      "x with `interior` padding values between neighbors and `low` and `high` of them around each axis; "
      "negative low and high crop.";
  schema.operator_class = OperatorClass::movement;
  schema.traits = {.any_axis_order = true};
  schema.inputs = {{.name = "x", .types = kAnyTypes}};
  schema.attributes = {list("low", "added before each axis"),
                       list("high", "added after each axis"),
                       list("interior", "added between neighbors of each axis"),
                       {.name = "value",
                        .kind = AttributeKind::real,
                        .default_value = 0.0,
                        .documentation = "what is added, rounded to the type of x"}};
  schema.outputs = {"y"};
  schema.infer = infer_pad;
  schema.gradient = gradient_pad;
  schema.reference = reference_pad;
  schema.examples = {example_pad({3, 5}, {1, 0}, {2, 3}, {0, 0}),
                     example_pad({3, 5}, {0, 2}, {1, 0}, {2, 1}, 0.5),
                     example_pad({7}, {-2}, {-1}, {0}),
                     example_pad({5}, {-3}, {2}, {1}),
                     example_pad({0, 2}, {1, 0}, {0, 0}, {3, 0}, 1),
                     example_pad({}, {}, {}, {}),
                     example_pad({4}, {1}, {1}, {0}, -7, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_pad()};

}  // namespace
}  // namespace tessera::ops
