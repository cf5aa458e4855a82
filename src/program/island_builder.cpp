#include "program/island_builder.h"

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "program/lower_call.h"

namespace tessera::program {
namespace {

constexpr int64_t kMostFoldedOperands = 1 << 16;  // elements
constexpr size_t kLargestNode = 4096;             // bytes of a constant that is a node of the graph
constexpr int64_t kMostRemembered = 256;          // elements of what stays settled from island to island

bool has_bodies(const Instruction& instruction) {
  return std::any_of(instruction.arguments.begin(), instruction.arguments.end(), [](const auto& entry) {
    return std::holds_alternative<std::shared_ptr<const Block>>(entry.second);
  });
}

}  // namespace

std::string legal_name(const std::string& name) {
  std::string legal = name;
  for (char& c : legal) {
    const bool keeps = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '/' || c == '-';
    if (!keeps) c = '_';
  }
  return legal.empty() ? "_" : legal;
}

const std::string& WeightNames::name_of(const Tensor& tensor, const std::string& wanted) {
  const auto [entry, is_new] = names_.try_emplace(tensor.raw(), legal_name(wanted));
  if (is_new) {
    const int before = taken_[entry->second]++;
    if (before > 0) entry->second += fmt::format(".{}", before);
  }
  return entry->second;
}

Signature signature_of(const Frame::Found& found) {
  if (found.entry != nullptr && found.entry->type_only)
    return {Signature::Kind::tensor, *found.entry->type_only};
  if (found.is_constant) return {Signature::Kind::constant, {}};
  if (found.item == nullptr || found.item->absent()) return {};
  const std::optional<TensorType> type = found.item->tensor_type();
  if (!type.has_value()) return {Signature::Kind::other, {}};
  return {Signature::Kind::tensor, *type};
}

IslandBuilder::IslandBuilder(const Frame& frame, size_t begin, WeightNames& names, WeightRole role,
                             GraphOwner* owner)
    : frame_(frame), begin_(begin), names_(names), role_(role), owner_(owner), scopes_{{&frame.block()}} {
  island_.graph = std::make_unique<Graph>(legal_name(frame.block().name));
}

Slot* IslandBuilder::find_slot(const std::string& name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (const auto found = scope.slots.find(name); found != scope.slots.end()) return &found->second;
    if (const auto constant = scope.block->constants.find(name); constant != scope.block->constants.end()) {
      Slot slot{.settled = true, .item = constant->second, .is_constant = true};
      // An input with a default: what was given instead stands in the frame.
      if (i == 0) {
        const Frame::Found found = frame_.find(name);
        if (!found.is_constant) continue;
        if (found.is_default) island_.reads.insert_or_assign(name, signature_of(found));
      }
      return &scope.slots.emplace(name, std::move(slot)).first->second;
    }
  }
  return nullptr;
}

Slot IslandBuilder::read_frame(const std::string& name) {
  const Frame::Found found = frame_.find(name);
  require(found.item != nullptr, ErrorCode::internal, "the value '{}' is not there", name);
  const Signature signature = signature_of(found);
  if (found.is_constant) {
    if (found.is_default) island_.reads.insert_or_assign(name, signature);
    return {.settled = true, .item = *found.item, .is_constant = true};
  }
  island_.reads.insert_or_assign(name, signature);
  if (signature.kind == Signature::Kind::absent) return {.settled = true};
  if (signature.kind == Signature::Kind::other) return {.source = name};
  Slot slot{.type = signature.type, .value = found.entry->value, .source = name};
  if (found.entry->settled && slot.type.element_count() <= kMostRemembered) assume(slot);
  return slot;
}

Slot& IslandBuilder::slot(const std::string& name) {
  if (Slot* found = find_slot(name)) return *found;
  return scopes_.front().slots.emplace(name, read_frame(name)).first->second;
}

void IslandBuilder::require_contents(const Slot& slot, const Instruction& instruction, size_t operand) const {
  const bool there = !slot.source.empty() && !frame_.find(slot.source).item->absent();
  if (!there) {
    throw EndOfIsland{
        fmt::format("{} needs the contents of '{}'", instruction.place(), instruction.operands[operand])};
  }
}

void IslandBuilder::assume(Slot& slot) {
  const Item& item = *frame_.find(slot.source).item;
  if (item.tensor() != nullptr) island_.assumptions.insert_or_assign(slot.source, *item.tensor());
  slot.settled = true;
  slot.item = item;
  slot.value = nullptr;
}

bool IslandBuilder::becomes_variable(const Slot& slot) const {
  if (!slot.settled || !slot.is_constant || slot.item.tensor() == nullptr) return false;
  const Tensor& tensor = *slot.item.tensor();
  // A number of its own, such as the root by which scores are divided, is part of what is computed: passes
  // look for it.
  const bool is_number = tensor.shape().empty();
  if (owner_ != nullptr) return tensor.data_type() == DataType::fp32 && !is_number;
  if (is_number) return false;
  return role_ == WeightRole::parameter ? is_floating(tensor.data_type()) : tensor.bytes() > kLargestNode;
}

Value* IslandBuilder::value_of(const std::string& name, Slot& slot, bool is_statistic) {
  if (slot.value != nullptr) return slot.value;
  if (!slot.settled) {
    const auto read = island_.reads.find(slot.source);
    if (read != island_.reads.end() && read->second.kind == Signature::Kind::other)
      throw NotLowered{fmt::format("'{}' is no tensor", name)};
    std::string input = legal_name(slot.source);
    while (graph().find(input) != nullptr) input += '_';
    slot.value = graph().add_input(InputRole::input, input, slot.type);
    island_.feeds.emplace(input, slot.source);
    return slot.value;
  }
  const Tensor* tensor = slot.item.tensor();
  if (tensor == nullptr) throw NotLowered{fmt::format("'{}' is no tensor", name)};
  if (!becomes_variable(slot)) return slot.value = ops::constant(graph(), *tensor);
  const std::string& weight = names_.name_of(*tensor, name);
  if (owner_ != nullptr) return slot.value = owner_->variable(weight, *tensor, is_statistic);
  const bool is_parameter = role_ == WeightRole::parameter;
  slot.value = graph().find_input(weight);
  if (slot.value == nullptr) {
    slot.value = graph().add_input(is_parameter ? InputRole::parameter : InputRole::constant, weight,
                                   {tensor->data_type(), to_symbolic(tensor->shape())});
    island_.weights.emplace(weight, *tensor);
  }
  return slot.value;
}

bool IslandBuilder::settled(const Instruction& instruction) {
  int64_t elements = 0;
  for (const std::string& name : instruction.operands) {
    if (name.empty()) continue;
    const Slot& operand = slot(name);
    // What is made of a weight that is trained changes with it.
    if (!operand.settled || (owner_ != nullptr && becomes_variable(operand))) return false;
    if (operand.item.tensor() != nullptr) elements += operand.item.tensor()->size();
  }
  return elements <= kMostFoldedOperands;
}

void IslandBuilder::keep(const Instruction& instruction, std::vector<Slot> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = instruction.results[i];
    if (name.empty()) continue;
    require(results[i].settled || results[i].value != nullptr, ErrorCode::unsupported,
            "{}: its result {} is not supported", instruction.place(), i);
    scopes_.back().slots.insert_or_assign(name, std::move(results[i]));
  }
}

bool IslandBuilder::fold(const Instruction& instruction, const Rule& rule) {
  if (rule.random || has_bodies(instruction) || !settled(instruction)) return false;
  if (rule.lower) {
    try {
      FoldingCall call(*this, instruction);
      rule.lower(call);
      if (!call.evaluate()) return false;
      keep(instruction, std::move(call.results()));
      return true;
    } catch (const NotLowered&) {
      if (!rule.evaluate) throw;
    }
  }
  SettledHostCall call(*this, instruction);
  rule.evaluate(call);
  keep(instruction, std::move(call.results()));
  return true;
}

void IslandBuilder::erase_nodes_after(const Node* last) {
  while (!graph().nodes().empty() && graph().nodes().back().get() != last)
    graph().erase(graph().nodes().back().get());
}

void IslandBuilder::lower_in_graph(const Instruction& instruction, const Rule& rule) {
  if (!rule.lower) throw NotLowered{fmt::format("{} runs on the host", instruction.place())};
  IslandCall call(*this, instruction);
  rule.lower(call);
  keep(instruction, std::move(call.results()));
}

void IslandBuilder::lower(const Instruction& instruction) {
  const Rule* rule = RuleRegistry::instance().find(instruction);
  require(rule != nullptr, ErrorCode::unsupported, "{} of opset {} is not supported", instruction.place(),
          instruction.version);
  try {
    if (!fold(instruction, *rule)) lower_in_graph(instruction, *rule);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(instruction.place()) != std::string::npos) throw;
    throw Error(error.code(), fmt::format("{}: {}", instruction.place(), message));
  }
}

std::vector<Slot> IslandBuilder::inline_body(const Block& body, const std::vector<Value*>& inputs) {
  require(inputs.size() == body.inputs.size(), ErrorCode::invalid_file,
          "body '{}' takes {} values, it is given {}", body.name, body.inputs.size(), inputs.size());
  // Leaves the scope however the rules end.
  struct Inside {
    std::vector<Scope>& scopes;
    ~Inside() { scopes.pop_back(); }
  };
  scopes_.push_back({&body});
  const Inside inside{scopes_};
  for (size_t i = 0; i < inputs.size(); ++i)
    scopes_.back().slots[body.inputs[i].name] = {.type = inputs[i]->type(), .value = inputs[i]};
  for (const Instruction& instruction : body.instructions) lower(instruction);
  std::vector<Slot> outputs;
  for (const Declaration& output : body.outputs) {
    Slot result = slot(output.name);
    if (!result.settled && result.value == nullptr) value_of(output.name, result);
    result.is_constant = false;
    outputs.push_back(std::move(result));
  }
  return outputs;
}

void IslandBuilder::export_results() {
  const auto& last_read = frame_.block().last_read;
  // The block's outputs come first and in their order, which whoever takes the graph alone knows.
  const auto& slots = scopes_.front().slots;
  std::vector<std::string> names;
  std::set<std::string> listed;
  for (const Declaration& output : frame_.block().outputs) {
    if (slots.count(output.name) != 0 && listed.insert(output.name).second) names.push_back(output.name);
  }
  for (const auto& [name, slot] : slots) {
    if (listed.count(name) == 0) names.push_back(name);
  }
  std::map<const Value*, std::string> outputs;
  for (const std::string& name : names) {
    const Slot& slot = slots.at(name);
    const auto read = last_read.find(name);
    const bool made_here = slot.source != name && !slot.is_constant;
    if (!made_here || read == last_read.end() || read->second < island_.end) continue;
    Export exported{.name = name};
    if (slot.settled) {
      exported.item = slot.item;
    } else if (owner_ != nullptr) {
      exported.value = slot.value;
    } else if (slot.value->producer() == nullptr && island_.feeds.count(slot.value->name()) != 0) {
      exported.alias = island_.feeds.at(slot.value->name());
    } else if (island_.weights.count(slot.value->name()) != 0) {
      exported.item = island_.weights.at(slot.value->name());
    } else {
      std::string& output = outputs[slot.value];
      if (output.empty()) {
        output = legal_name(name);
        while (std::any_of(graph().outputs().begin(), graph().outputs().end(),
                           [&](const Graph::Output& other) { return other.name == output; }))
          output += '_';
        graph().add_output(output, slot.value);
      }
      exported.output = output;
    }
    island_.exports.push_back(std::move(exported));
  }
}

Island IslandBuilder::build() {
  const std::vector<Instruction>& instructions = frame_.block().instructions;
  island_.end = instructions.size();
  island_.why = "the block ends";
  for (size_t i = begin_; i < instructions.size(); ++i) {
    const Node* last = graph().nodes().empty() ? nullptr : graph().nodes().back().get();
    const auto stop = [&](const std::string& why) {
      erase_nodes_after(last);
      island_.end = i;
      island_.why = why;
    };
    try {
      lower(instructions[i]);
      continue;
    } catch (const EndOfIsland& end) {
      stop(end.why);
    } catch (const NotLowered& end) {
      stop(end.why);
    }
    if (i > begin_) break;
    // Nothing stands before it: what it asks for is nowhere, or is none of a graph's values.
    const Rule* rule = RuleRegistry::instance().find(instructions[i]);
    require(static_cast<bool>(rule->evaluate), ErrorCode::unsupported, "{}", island_.why);
    island_.on_host = true;
    island_.end = i + 1;
    return std::move(island_);
  }
  export_results();
  return std::move(island_);
}

Island build_island(const Frame& frame, size_t begin, WeightNames& names, WeightRole role,
                    GraphOwner* owner) {
  return IslandBuilder(frame, begin, names, role, owner).build();
}

}  // namespace tessera::program
