// If, Loop, Scan, SequenceMap.
#include <algorithm>

#include "onnx/lowering.h"
#include "onnx/stack.h"

namespace tessera::onnx {
namespace {

using program::Block;

// A condition that is known chooses the branch while the graph is made.
void lower_if(LowerCall& call) {
  const bool holds = known_number(call, 0) != 0;
  call.inline_body(call.body(holds ? "then_branch" : "else_branch"));
}

void evaluate_if(HostCall& call) {
  const bool holds = number_in(call, 0) != 0;
  std::vector<Item> results = call.run(call.body(holds ? "then_branch" : "else_branch"), {});
  for (size_t i = 0; i < results.size(); ++i) call.result(i, std::move(results[i]));
}

const Tensor& tensor_in(const HostCall& call, const Item& item) {
  call.require(item.tensor() != nullptr, "what a body gives to be put together is no tensor");
  return *item.tensor();
}

// What iterations give one after the other. Of none the extents are 0, or those that the body declares.
Tensor stacked(const HostCall& call, const std::vector<Tensor>& parts, int64_t axis,
               const program::Declaration& output) {
  if (!parts.empty()) {
    const auto rank = std::ssize(parts[0].shape()) + 1;
    return stack(parts, axis_of(call, axis, rank));
  }
  call.require(output.tensor.has_value(),
               "no iteration took place, and the body does not declare the type of its output");
  Shape shape{0};
  for (const Dimension& extent : output.tensor->shape)
    shape.push_back(extent.is_static() ? extent.value() : 0);
  return Tensor(output.tensor->data_type, shape);
}

void evaluate_loop(HostCall& call) {
  const Block& body = call.body("body");
  const int64_t trips = call.has(0) ? integer_in(call, 0) : std::numeric_limits<int64_t>::max();
  bool goes_on = !call.has(1) || number_in(call, 1) != 0;
  std::vector<Item> carried;
  for (size_t i = 2; i < call.operand_count(); ++i) carried.push_back(call.operand(i));
  call.require(body.inputs.size() == carried.size() + 2 && body.outputs.size() > carried.size(),
               "its body does not take and give what it carries");
  std::vector<std::vector<Tensor>> parts(body.outputs.size() - 1 - carried.size());
  for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
    call.require(trip < call.most_iterations(),
                 fmt::format("more than {} iterations", call.most_iterations()));
    std::vector<Item> inputs{Tensor::from<int64_t>({}, {trip}), Tensor::scalar(DataType::boolean, 1)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Item> outputs = call.run(body, std::move(inputs));
    const Tensor& condition = tensor_in(call, outputs[0]);
    call.require(condition.size() == 1, "the condition that its body gives is to be one boolean");
    goes_on = condition.at(0) != 0;
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = std::move(outputs[i + 1]);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].push_back(tensor_in(call, outputs[i + 1 + carried.size()]));
  }
  for (size_t i = 0; i < carried.size(); ++i) call.result(i, carried[i]);
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t output = i + carried.size();
    if (call.wants(output)) call.result(output, stacked(call, parts[i], 0, body.outputs[output + 1]));
  }
}

// Attributes of a scan with a number for each of its inputs or outputs, 0 where they are not given.
int64_t number_for(const HostCall& call, const char* name, size_t i) {
  const std::vector<int64_t> numbers = call.integers(name);
  return i < numbers.size() ? numbers[i] : 0;
}

struct ScanResults {
  std::vector<Item> states;
  std::vector<Tensor> outputs;
};

ScanResults scan(HostCall& call, std::vector<Item> states, const std::vector<Tensor>& inputs,
                 int64_t length) {
  const Block& body = call.body("body");
  std::vector<std::vector<Tensor>> parts(body.outputs.size() - states.size());
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Item> given = states;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t axis =
          axis_of(call, number_for(call, "scan_input_axes", i), std::ssize(inputs[i].shape()));
      const bool backward = number_for(call, "scan_input_directions", i) != 0;
      given.emplace_back(element_of(inputs[i], axis, backward ? length - 1 - step : step));
    }
    std::vector<Item> results = call.run(body, std::move(given));
    for (size_t i = 0; i < parts.size(); ++i) parts[i].push_back(tensor_in(call, results[i + states.size()]));
    results.resize(states.size());
    states = std::move(results);
  }
  ScanResults result{std::move(states), {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (number_for(call, "scan_output_directions", i) != 0) std::reverse(parts[i].begin(), parts[i].end());
    result.outputs.push_back(stacked(call, parts[i], number_for(call, "scan_output_axes", i),
                                     body.outputs[i + result.states.size()]));
  }
  return result;
}

int64_t scan_length(const HostCall& call, const std::vector<Tensor>& inputs) {
  int64_t length = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t axis = axis_of(call, number_for(call, "scan_input_axes", i), std::ssize(inputs[i].shape()));
    const int64_t extent = inputs[i].shape()[static_cast<size_t>(axis)];
    call.require(length < 0 || length == extent, "the axes that it scans differ in length");
    length = extent;
  }
  call.require(length >= 0, "it scans nothing");
  return length;
}

void evaluate_scan(HostCall& call) {
  const auto scanned = static_cast<size_t>(call.integer("num_scan_inputs"));
  call.require(scanned <= call.operand_count() && call.body("body").inputs.size() == call.operand_count() &&
                   call.body("body").outputs.size() >= call.operand_count() - scanned,
               "its body does not take and give what it scans");
  const size_t state_count = call.operand_count() - scanned;
  std::vector<Item> states;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < state_count; ++i) states.push_back(call.operand(i));
  for (size_t i = state_count; i < call.operand_count(); ++i) inputs.push_back(call.tensor(i));
  ScanResults results = scan(call, std::move(states), inputs, scan_length(call, inputs));
  for (size_t i = 0; i < state_count; ++i) call.result(i, results.states[i]);
  for (size_t i = 0; i < results.outputs.size(); ++i) call.result(state_count + i, results.outputs[i]);
}

// Opset 8: operand 0 is the lengths of the rows of a batch, whose first axis all others have; the second is
// scanned.
void evaluate_batched_scan(HostCall& call) {
  const auto scanned = static_cast<size_t>(call.integer("num_scan_inputs"));
  call.require(scanned > 0 && scanned < call.operand_count(), "it scans nothing");
  call.require(call.integers("directions").empty(), "directions of opset 8 are not supported");
  const size_t state_count = call.operand_count() - 1 - scanned;
  const Shape& last = call.tensor(call.operand_count() - 1).shape();
  call.require(!last.empty() && last[0] > 0, "its operands are to have a batch");
  const int64_t rows = last[0];
  const size_t result_count = call.body("body").outputs.size();
  std::vector<std::vector<Tensor>> gathered(result_count);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Item> states;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < state_count; ++i) states.emplace_back(element_of(call.tensor(i + 1), 0, row));
    for (size_t i = state_count + 1; i < call.operand_count(); ++i)
      inputs.push_back(element_of(call.tensor(i), 0, row));
    int64_t length = scan_length(call, inputs);
    if (call.has(0)) {
      const Tensor lengths = call.tensor(0).cast(DataType::int64);
      call.require(lengths.size() == rows, "there is to be a length for each row");
      const int64_t given = lengths.data<int64_t>()[static_cast<size_t>(row)];
      call.require(given >= 0 && given <= length, "a row is longer than the axis that is scanned");
      length = given;
    }
    ScanResults results = scan(call, std::move(states), inputs, length);
    for (size_t i = 0; i < state_count; ++i) gathered[i].push_back(tensor_in(call, results.states[i]));
    for (size_t i = 0; i < results.outputs.size(); ++i)
      gathered[state_count + i].push_back(results.outputs[i]);
  }
  for (size_t i = 0; i < result_count; ++i) call.result(i, stack(gathered[i], 0));
}

void evaluate_sequence_map(HostCall& call) {
  const Block& body = call.body("body");
  const size_t length = call.sequence(0).size();
  std::vector<Item::Sequence> results(body.outputs.size());
  for (size_t step = 0; step < length; ++step) {
    std::vector<Item> inputs;
    for (size_t i = 0; i < call.operand_count(); ++i) {
      const Item::Sequence* items = call.operand(i).sequence();
      call.require(items == nullptr || items->size() == length, "its sequences differ in length");
      inputs.push_back(items == nullptr ? call.operand(i) : (*items)[step]);
    }
    std::vector<Item> outputs = call.run(body, std::move(inputs));
    for (size_t i = 0; i < outputs.size(); ++i) results[i].push_back(std::move(outputs[i]));
  }
  for (size_t i = 0; i < results.size(); ++i) call.result(i, std::move(results[i]));
}

const RuleRegistrations kRegistration{
    {.name = "If", .lower = lower_if, .evaluate = evaluate_if},
    {.name = "Loop", .evaluate = evaluate_loop},
    {.name = "Scan", .since = 9, .evaluate = evaluate_scan},
    {.name = "Scan", .until = 8, .evaluate = evaluate_batched_scan},
    {.name = "SequenceMap", .evaluate = evaluate_sequence_map},
};

}  // namespace
}  // namespace tessera::onnx
