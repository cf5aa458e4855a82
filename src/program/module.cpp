#include "tessera/program/module.h"

#include <limits>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/program/rule.h"

namespace tessera::program {
namespace {

constexpr size_t kOutput = std::numeric_limits<size_t>::max();

std::shared_ptr<const Block> body_of(const Argument& argument) {
  const auto* body = std::get_if<std::shared_ptr<const Block>>(&argument);
  return body == nullptr ? nullptr : *body;
}

// What a block reads of those around it.
std::set<std::string> captures_of(const Block& block) {
  std::set<std::string> captured;
  std::set<std::string> given;
  for (const Declaration& input : block.inputs) given.insert(input.name);
  for (const auto& [name, item] : block.constants) given.insert(name);
  const auto read = [&](const std::string& name) {
    if (!name.empty() && given.count(name) == 0) captured.insert(name);
  };
  for (const Instruction& instruction : block.instructions) {
    for (const std::string& name : instruction.operands) read(name);
    for (const auto& [key, argument] : instruction.arguments) {
      if (const auto body = body_of(argument)) {
        for (const std::string& name : captures_of(*body)) read(name);
      }
    }
    given.insert(instruction.results.begin(), instruction.results.end());
  }
  for (const Declaration& output : block.outputs) read(output.name);
  return captured;
}

void count_unknown(const Block& block, std::map<std::string, int>& counts) {
  for (const Instruction& instruction : block.instructions) {
    if (RuleRegistry::instance().find(instruction) == nullptr) {
      const std::string domain = instruction.domain.empty() ? "" : instruction.domain + ".";
      ++counts[fmt::format("{}{} (opset {})", domain, instruction.operator_name, instruction.version)];
    }
    for (const auto& [name, argument] : instruction.arguments) {
      if (const auto body = body_of(argument)) count_unknown(*body, counts);
    }
  }
}

}  // namespace

std::string Instruction::place() const {
  return name.empty() ? fmt::format("a node ({})", operator_name)
                      : fmt::format("node '{}' ({})", name, operator_name);
}

void prepare(Block& block, const Block* outer) {
  block.last_read.clear();
  std::set<std::string> given;
  for (const Declaration& input : block.inputs) given.insert(input.name);
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    const Instruction& instruction = block.instructions[i];
    for (const std::string& name : instruction.operands) block.last_read[name] = i;
    for (const auto& [key, argument] : instruction.arguments) {
      if (const auto body = body_of(argument)) {
        for (const std::string& name : captures_of(*body)) block.last_read[name] = i;
      }
    }
    for (const std::string& name : instruction.results) {
      require(name.empty() || given.insert(name).second, ErrorCode::invalid_file,
              "graph '{}': {} gives the value '{}', which is given before", block.name, instruction.place(),
              name);
    }
  }
  for (const Declaration& output : block.outputs) block.last_read[output.name] = kOutput;
  if (outer != nullptr) return;
  for (const std::string& name : captures_of(block))
    fail(ErrorCode::invalid_file, "graph '{}': the value '{}' is read, but nothing gives it before",
         block.name, name);
}

std::vector<std::string> unsupported_operators(const Module& module) {
  std::map<std::string, int> counts;
  count_unknown(*module.main, counts);
  std::vector<std::string> lines;
  for (const auto& [name, count] : counts)
    lines.push_back(fmt::format("{}: {} {}", name, count, count == 1 ? "time" : "times"));
  return lines;
}

}  // namespace tessera::program
