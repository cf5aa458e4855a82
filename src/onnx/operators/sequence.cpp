// Sequences and optionals: SequenceEmpty, SequenceConstruct, SequenceInsert, SequenceErase, SequenceAt,
// SequenceLength, ConcatFromSequence, SplitToSequence, Optional, OptionalHasElement, OptionalGetElement.
#include <algorithm>

#include "onnx/lowering.h"
#include "onnx/stack.h"

namespace tessera::onnx {
namespace {

// A place in a sequence; `extra` is 1 where it may be the end.
int64_t place_in(const HostCall& call, size_t operand, int64_t length, int64_t extra) {
  const Tensor place = call.tensor(operand).cast(DataType::int64);
  call.require(place.size() == 1, "a place is one number");
  const int64_t at = place.data<int64_t>()[0];
  call.require(at >= -length && at < length + extra, fmt::format("place {} of a sequence of {}", at, length));
  return at < 0 ? at + length : at;
}

void evaluate_construct(HostCall& call) {
  Item::Sequence items;
  for (size_t i = 0; i < call.operand_count(); ++i) items.push_back(call.operand(i));
  call.result(0, std::move(items));
}

void evaluate_insert(HostCall& call) {
  Item::Sequence items = call.sequence(0);
  const int64_t place = call.has(2) ? place_in(call, 2, std::ssize(items), 1) : std::ssize(items);
  items.insert(items.begin() + place, call.operand(1));
  call.result(0, std::move(items));
}

void evaluate_erase(HostCall& call) {
  Item::Sequence items = call.sequence(0);
  const int64_t place = call.has(1) ? place_in(call, 1, std::ssize(items), 0) : std::ssize(items) - 1;
  call.require(place >= 0, "the sequence is empty");
  items.erase(items.begin() + place);
  call.result(0, std::move(items));
}

void evaluate_at(HostCall& call) {
  const Item::Sequence& items = call.sequence(0);
  call.result(0, items[static_cast<size_t>(place_in(call, 1, std::ssize(items), 0))]);
}

void evaluate_concat(HostCall& call) {
  std::vector<Tensor> parts;
  for (const Item& item : call.sequence(0)) {
    call.require(item.tensor() != nullptr, "its sequence holds something else than tensors");
    parts.push_back(*item.tensor());
  }
  call.require(!parts.empty(), "its sequence is empty");
  const bool stacks = call.integer("new_axis", 0) != 0;
  const int64_t rank = std::ssize(parts[0].shape()) + (stacks ? 1 : 0);
  const int64_t axis = axis_of(call, call.integer("axis"), rank);
  call.result(0, stacks ? stack(parts, axis) : concatenate(parts, axis));
}

// By sizes, by one size, or one by one.
void evaluate_split(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = axis_of(call, call.integer("axis", 0), std::ssize(x.shape()));
  const int64_t size = x.shape()[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  if (call.has(1) && !call.tensor(1).shape().empty()) {
    for (const double part : call.tensor(1).to_doubles()) sizes.push_back(static_cast<int64_t>(part));
  } else {
    const int64_t part = call.has(1) ? static_cast<int64_t>(number_in(call, 1)) : 1;
    call.require(part > 0, "the size of its parts is to be positive");
    for (int64_t start = 0; start < size; start += part) sizes.push_back(std::min(part, size - start));
  }
  Item::Sequence items;
  int64_t start = 0;
  for (const int64_t part : sizes) {
    call.require(part >= 0 && start + part <= size, "its parts are more than the axis");
    Tensor piece = part_of(x, axis, start, start + part);
    if (!call.has(1) && call.integer("keepdims", 1) == 0) piece = element_of(x, axis, start);
    items.emplace_back(std::move(piece));
    start += part;
  }
  call.require(start == size, "its parts are less than the axis");
  call.result(0, std::move(items));
}

const RuleRegistrations kRegistration{
    {.name = "SequenceEmpty", .evaluate = [](HostCall& call) { call.result(0, Item::Sequence{}); }},
    {.name = "SequenceConstruct", .evaluate = evaluate_construct},
    {.name = "SequenceInsert", .evaluate = evaluate_insert},
    {.name = "SequenceErase", .evaluate = evaluate_erase},
    {.name = "SequenceAt", .evaluate = evaluate_at},
    {.name = "SequenceLength",
     .evaluate =
         [](HostCall& call) { call.result(0, Tensor::from<int64_t>({}, {std::ssize(call.sequence(0))})); }},
    {.name = "ConcatFromSequence", .evaluate = evaluate_concat},
    {.name = "SplitToSequence", .evaluate = evaluate_split},
    {.name = "Optional", .evaluate = [](HostCall& call) { call.result(0, call.operand(0)); }},
    {.name = "OptionalHasElement",
     .evaluate =
         [](HostCall& call) { call.result(0, Tensor::scalar(DataType::boolean, call.has(0) ? 1 : 0)); }},
    {.name = "OptionalGetElement",
     .evaluate =
         [](HostCall& call) {
           call.require(call.has(0), "the optional is empty");
           call.result(0, call.operand(0));
         }},
};

}  // namespace
}  // namespace tessera::onnx
