#include "tessera/ops/functions.h"
#include "tessera/program/rule.h"

#include "program/program_test.h"

namespace tessera::program {
namespace {

void lower_add(LowerCall& call) {
  call.result(0, ops::add(call.operand(0), call.operand(1)));
}

// The first n elements, n an operand.
void lower_take(LowerCall& call) {
  const int64_t count = call.known_integers(1).at(0);
  call.result(0, ops::slice(call.operand(0), {0}, {count}));
}

void lower_length(LowerCall& call) {
  call.result(0, Tensor::from<int64_t>({1}, {call.type(0).element_count()}));
}

// Adds up as int64 in the graph, so that what it gives is not known ahead.
void lower_sum(LowerCall& call) {
  call.result(0, ops::reshape(ops::cast(ops::reduce_sum(call.operand(0)), DataType::int64), {1}));
}

void evaluate_positive(HostCall& call) {
  std::vector<float> kept;
  for (const double value : call.tensor(0).to_doubles()) {
    if (value > 0) kept.push_back(static_cast<float>(value));
  }
  call.result(0, numbers(kept));
}

void evaluate_name(HostCall& call) {
  call.result(0, TextTensor{{}, {to_string(call.operand(0))}});
}

void lower_choose(LowerCall& call) {
  call.inline_body(call.body(call.known(0).at(0) != 0 ? "then" : "else"));
}

void evaluate_choose(HostCall& call) {
  const std::vector<Item> results = call.run(call.body(call.tensor(0).at(0) != 0 ? "then" : "else"), {});
  for (size_t i = 0; i < results.size(); ++i) call.result(i, results[i]);
}

// The body so often as the first operand says, on what it gave before.
void evaluate_repeat(HostCall& call) {
  Item carried = call.operand(1);
  const auto count = static_cast<int64_t>(call.tensor(0).at(0));
  for (int64_t i = 0; i < count; ++i) carried = call.run(call.body("body"), {carried}).at(0);
  call.result(0, carried);
}

const RuleRegistration kRepeat({.name = "repeat", .domain = "test", .evaluate = evaluate_repeat});
const RuleRegistration kAdd({.name = "add", .domain = "test", .lower = lower_add});
const RuleRegistration kTake({.name = "take", .domain = "test", .lower = lower_take});
const RuleRegistration kLength({.name = "length", .domain = "test", .lower = lower_length});
const RuleRegistration kSum({.name = "sum", .domain = "test", .lower = lower_sum});
const RuleRegistration kPositive({.name = "positive", .domain = "test", .evaluate = evaluate_positive});
const RuleRegistration kName({.name = "name", .domain = "test", .evaluate = evaluate_name});
const RuleRegistration kChoose(
    {.name = "choose", .domain = "test", .lower = lower_choose, .evaluate = evaluate_choose});

}  // namespace

Instruction instruction(const std::string& name, std::vector<std::string> operands,
                        std::vector<std::string> results) {
  return {.name = name + "_of_" + (results.empty() ? "nothing" : results[0]),
          .domain = "test",
          .operator_name = name,
          .version = 1,
          .operands = std::move(operands),
          .results = std::move(results)};
}

Declaration declare(const std::string& name, TensorType type) {
  return {name, to_string(type), type};
}

std::shared_ptr<const Module> module_of(Block block) {
  prepare(block);
  auto module = std::make_shared<Module>();
  module->name = "module";
  module->main = std::make_shared<const Block>(std::move(block));
  return module;
}

RunnerOptions reference_options() {
  return {.devices = {Device::reference()}};
}

Tensor numbers(const std::vector<float>& values) {
  return Tensor::from<float>({std::ssize(values)}, values);
}

std::vector<double> values_of(const std::map<std::string, Item>& outputs, const std::string& name) {
  return outputs.at(name).tensor()->to_doubles();
}

}  // namespace tessera::program
