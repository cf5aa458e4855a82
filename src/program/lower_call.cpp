#include "program/lower_call.h"

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::program {
namespace {

constexpr int64_t kMostFolded = 1 << 16;  // elements of a folded result

TensorType type_of(const Tensor& tensor) {
  return {tensor.data_type(), to_symbolic(tensor.shape())};
}

const Item kAbsent;

}  // namespace

IslandCall::IslandCall(IslandBuilder& builder, const Instruction& instruction)
    : LowerCall(instruction), builder_(builder), results_(instruction.results.size()) {}

const std::string& IslandCall::name(size_t i) const {
  static const std::string kNone;
  return i < instruction().operands.size() ? instruction().operands[i] : kNone;
}

bool IslandCall::has(size_t operand) const {
  if (name(operand).empty()) return false;
  const Slot& found = slot(operand);
  return !found.settled || !found.item.absent();
}

Value* IslandCall::value_of(size_t i, bool is_statistic) {
  if (!has(i)) return nullptr;
  return builder_.value_of(name(i), slot(i), is_statistic);
}

GraphOwner* IslandCall::trainer() {
  GraphOwner* owner = builder_.owner();
  return owner != nullptr && owner->trains() ? owner : nullptr;
}

TensorType IslandCall::type(size_t i) {
  require(has(i), fmt::format("operand {} is missing", i));
  const Slot& found = slot(i);
  if (!found.settled) return found.type;
  if (found.item.tensor() == nullptr) throw NotLowered{fmt::format("'{}' is no tensor", name(i))};
  return type_of(*found.item.tensor());
}

Tensor IslandCall::known(size_t i) {
  require(has(i), fmt::format("operand {} is missing", i));
  Slot& found = slot(i);
  if (!found.settled) {
    builder_.require_contents(found, instruction(), i);
    builder_.assume(found);
  }
  if (found.item.tensor() == nullptr) throw NotLowered{fmt::format("'{}' is no tensor", name(i))};
  return *found.item.tensor();
}

const Tensor* IslandCall::settled(size_t i) {
  if (!has(i)) return nullptr;
  const Slot& found = slot(i);
  return found.settled ? found.item.tensor() : nullptr;
}

Value* IslandCall::made_here(const std::string& name) {
  const Slot* found = builder_.find_slot(name);
  return found == nullptr || found->settled || !found->source.empty() ? nullptr : found->value;
}

void IslandCall::result(size_t i, Value* value) {
  if (i >= results_.size()) return;
  results_[i].value = value;
  results_[i].type = value->type();
}

void IslandCall::result(size_t i, Tensor value) {
  if (i >= results_.size()) return;
  results_[i].settled = true;
  results_[i].item = std::move(value);
}

void IslandCall::inline_body(const Block& body) {
  results_ = builder_.inline_body(body, {});
  results_.resize(instruction().results.size());
}

std::vector<Value*> IslandCall::inline_body(const Block& body, const std::vector<Value*>& inputs) {
  std::vector<Slot> outputs = builder_.inline_body(body, inputs);
  std::vector<Value*> values;
  for (size_t i = 0; i < outputs.size(); ++i)
    values.push_back(builder_.value_of(body.outputs[i].name, outputs[i]));
  return values;
}

Value* FoldingCall::value_of(size_t i, bool) {
  if (!has(i)) return nullptr;
  const Tensor* tensor = slot(i).item.tensor();
  if (tensor == nullptr) throw NotLowered{fmt::format("'{}' is no tensor", name(i))};
  return ops::constant(graph_, *tensor);
}

bool FoldingCall::evaluate() {
  std::vector<Slot*> made;
  for (Slot& slot : results_) {
    if (slot.settled || slot.value == nullptr) continue;
    if (slot.type.element_count() > kMostFolded) return false;
    graph_.add_output("result" + std::to_string(made.size()), slot.value);
    made.push_back(&slot);
  }
  // What a rule makes on the way may be larger than its operands and results.
  for (const auto& node : graph_.nodes()) {
    for (const auto& output : node->outputs()) {
      if (output->type().element_count() > 16 * kMostFolded) return false;
    }
  }
  const ReferenceResult result = run_reference(graph_, {});
  for (size_t i = 0; i < made.size(); ++i) *made[i] = {.settled = true, .item = result.outputs[i]};
  return true;
}

SettledHostCall::SettledHostCall(IslandBuilder& builder, const Instruction& instruction)
    : HostCall(instruction), builder_(builder), results_(instruction.results.size()) {}

const Item& SettledHostCall::operand(size_t i) const {
  const auto& operands = instruction().operands;
  return i >= operands.size() || operands[i].empty() ? kAbsent : builder_.slot(operands[i]).item;
}

void SettledHostCall::result(size_t i, Item item) {
  if (i < results_.size()) results_[i] = {.settled = true, .item = std::move(item)};
}

std::vector<Item> SettledHostCall::run(const Block&, std::vector<Item>) {
  fail(ErrorCode::internal, "{}: an instruction with bodies is not folded", instruction().place());
}

}  // namespace tessera::program
