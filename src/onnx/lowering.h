// What many rules share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/program/rule.h"

namespace tessera::onnx {

using program::HostCall;
using program::Item;
using program::LowerCall;
using program::Rule;
using program::TextTensor;

// Rules of the format's own domain that do not say since when they hold do so from this version on: before it
// shapes were attributes, and much else was written otherwise.
inline constexpr int64_t kFirstVersion = 6;

// Each rule of a file: RuleRegistrations kRegistration{{.name = "Add", .lower = add}, ...};
struct RuleRegistrations {
  RuleRegistrations(std::initializer_list<Rule> rules) {
    for (Rule rule : rules) {
      if (rule.domain.empty() && rule.since == 0) rule.since = kFirstVersion;
      program::RuleRegistry::instance().add(std::move(rule));
    }
  }
};

// Axes from the end made axes from the start. Throw Error(invalid_graph) naming the instruction.
int64_t axis_of(const program::Call& call, int64_t axis, int64_t rank);
std::vector<int64_t> axes_of(const program::Call& call, const std::vector<int64_t>& axes, int64_t rank);

// The second operand of an operator on elements. Before opset 7 it came to stand at an axis of the first one
// by an attribute.
Value* second_operand(LowerCall& call);

// The number that an operand of one element holds.
int64_t known_integer(LowerCall& call, size_t operand);
double known_number(LowerCall& call, size_t operand);
int64_t integer_in(const HostCall& call, size_t operand);
double number_in(const HostCall& call, size_t operand);

Shape shape_of(const Value* value);  // all static
// Throws Error(invalid_graph) where there is no such axis.
int64_t extent(const Value* value, int64_t axis);
int64_t product(const Shape& shape, size_t begin, size_t end);

Value* integers(Graph& graph, const std::vector<int64_t>& values);  // int64 [n]
Value* number(Graph& graph, DataType type, double value);           // a scalar
Value* reshape(Value* x, const Shape& shape);
Value* broadcast(Value* x, const Shape& shape);
Value* transpose(Value* x, const std::vector<int64_t>& permutation);
Value* unsqueeze(Value* x, std::vector<int64_t> axes);  // axes of the result, from the start
Value* squeeze(Value* x, const std::vector<int64_t>& axes);
// The elements [start, limit) of one axis.
Value* slice_axis(Value* x, int64_t axis, int64_t start, int64_t limit);
// Integers keep their lowest bits.
Value* cast_wrapping(Value* x, DataType type);

// Types that operators compute in: of what they do not know, one that holds it. uint64 becomes int64 of the
// same bits, which adds, subtracts and multiplies alike.
DataType computing_type(DataType type);
Value* to_computing(Value* x);
// The same for comparisons: uint64 becomes int64 in the same order.
Value* to_comparable(Value* x);
// The int64 of a uint64's bits as one in the order of those without sign.
Value* ordered_bits(Value* x);
// What a function of values in such types makes, back in the type.
Value* from_computing(Value* y, DataType type);

// Where the element at a place of a broadcast shape comes from, in a tensor of its own shape; row-major.
int64_t broadcast_source(const Shape& own, const Shape& shape, int64_t place);

// Row-major positions in a tensor of that shape, from its indices along each axis.
Value* unravel(const std::vector<Value*>& indices, const Shape& shape);
// 0, 1, 2, ... along an axis of that shape, int64.
Value* counted(Graph& graph, const Shape& shape, int64_t axis);

// A reduction over the axes; those of extent 1 too.
using Reduce = Value* (*)(Value*, const ops::ReduceOptions&);

}  // namespace tessera::onnx
