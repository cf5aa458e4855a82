#include "device/cpu/cluster/cluster_compiler.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

namespace tessera::cpu {
namespace {

using backend::refuse;

bool is_dense(const IterationSpace& space, const std::vector<int64_t>& strides) {
  return strides == row_major_strides(space.extents);
}

bool all_zero(const std::vector<int64_t>& strides, size_t count) {
  return std::all_of(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(count),
                     [](int64_t stride) { return stride == 0; });
}

}  // namespace

ClusterCompiler::ClusterCompiler(const Graph& body, int64_t capacity) : body_(body), capacity_(capacity) {}

Program ClusterCompiler::compile() {
  check_types();
  find_shape();
  make_inputs();
  for (const auto& node : body_.nodes()) add_node(*node);
  add_outputs();
  assign_buffers();
  note_accesses();
  return std::move(program_);
}

void ClusterCompiler::check_types() const {
  const auto check = [](const Value* value) {
    if (!has_lane(value->data_type())) refuse("clusters have no loops for {}", to_string(value->data_type()));
  };
  for (const auto& input : body_.inputs()) check(input.get());
  for (const auto& node : body_.nodes()) {
    for (const auto& output : node->outputs()) check(output.get());
  }
}

void ClusterCompiler::find_shape() {
  for (const auto& node : body_.nodes()) {
    if (node->schema().traits.reduction == ReductionKind::none) continue;
    if (reduction_ != nullptr) refuse("it holds two reductions");
    reduction_ = node.get();
    if (!node->output()->uses().empty()) refuse("something in it reads its reduction");
  }
  for (const Graph::Output& output : body_.outputs()) {
    program_.outputs.push_back({.type = output.value->data_type(),
                                .reduction = reduction_ != nullptr && output.value == reduction_->output()});
  }
  if (reduction_ != nullptr) {
    shape_ = reduction_->input(0)->type().static_shape();
  } else {
    shape_ = body_.outputs().at(0).value->type().static_shape();
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const Shape own = body_.outputs()[i].value->type().static_shape();
    if (!program_.outputs[i].reduction && own != shape_) {
      refuse("its values have the shapes {} and {}", to_string(shape_), to_string(own));
    }
  }
}

void ClusterCompiler::make_inputs() {
  std::vector<Shape> shapes;
  for (const auto& input : body_.inputs()) {
    ProgramInput own{.type = input->data_type()};
    const bool is_output =
        std::any_of(body_.outputs().begin(), body_.outputs().end(),
                    [&](const Graph::Output& output) { return output.value == input.get(); });
    own.raw = !is_output && std::all_of(input->uses().begin(), input->uses().end(),
                                        [](const Use& use) { return use.node->schema().traits.random; });
    const Shape shape = input->type().static_shape();
    if (!own.raw && !broadcasts_to(shape, shape_)) {
      refuse("input '{}' of shape {} does not broadcast to {}", input->name(), to_string(shape),
             to_string(shape_));
    }
    shapes.push_back(own.raw ? Shape{} : shape);
    program_.inputs.push_back(own);
  }
  const std::vector<bool> reduced = reduction_ == nullptr ? std::vector<bool>(shape_.size(), false)
                                                          : reduced_axes(*reduction_, shape_.size());
  program_.space = make_space(shape_, reduced, shapes);
  if (program_.space.extents.size() > RowCounter::kMaximumAxes) refuse("its values have too many axes");
  program_.tiling = Tiling(program_.space, capacity_);
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    if (!program_.inputs[i].raw) add_input_item(i);
  }
}

int ClusterCompiler::add_slot(Slot slot) {
  program_.slots.push_back(slot);
  return static_cast<int>(program_.slots.size()) - 1;
}

void ClusterCompiler::add_input_item(size_t index) {
  ProgramInput& input = program_.inputs[index];
  const std::vector<int64_t>& strides = program_.space.strides[index];
  const Lane lane = lane_of(input.type);
  const auto bytes = static_cast<int64_t>(size_of(input.type));
  const auto number = static_cast<int>(index);
  Item item{.slot = -1, .lane = lane, .rate = Rate::tile};
  input.contiguous = is_dense(program_.space, strides);
  const bool whole_rows = program_.tiling.whole_rows();
  if (input.contiguous || (!whole_rows && strides.back() == 1)) {
    item.slot = add_slot({Slot::Kind::input, number, bytes});
  } else if (all_zero(strides, strides.size())) {
    item.slot = add_slot({Slot::Kind::fixed, number, bytes});
    item.rate = Rate::uniform;
  } else if (!whole_rows) {
    item.slot = add_slot({Slot::Kind::input, number, bytes});
    item.rate = Rate::row;
  } else {
    item.rate = all_zero(strides, strides.size() - 1) ? Rate::tile_invariant : Rate::tile;
    item.slot = add_slot({Slot::Kind::buffer, virtual_buffers_++, bytes});
    code_of(item.rate).push_back({.kind = Instruction::Kind::expand, .out = item.slot, .index = number});
  }
  if (storage_of(lane) != input.type) {
    item = add_loop(find_load(input.type), lane, item.rate, {item});
  }
  items_[body_.inputs()[index].get()] = item;
}

std::vector<Instruction>& ClusterCompiler::code_of(Rate rate) {
  if (rate == Rate::uniform) return program_.once;
  return rate == Rate::tile_invariant ? program_.prologue : program_.body;
}

int ClusterCompiler::new_result(Rate rate) {
  if (rate == Rate::uniform || rate == Rate::row) {
    program_.constants.push_back(0);
    return add_slot({Slot::Kind::scalar, static_cast<int>(program_.constants.size()) - 1, 8});
  }
  return add_slot({Slot::Kind::buffer, virtual_buffers_++, 8});
}

ClusterCompiler::Item ClusterCompiler::add_loop(Loop loop, Lane result, Rate rate,
                                                const std::vector<Item>& operands) {
  Instruction instruction{.loop = loop, .single = rate == Rate::uniform || rate == Rate::row};
  instruction.out = new_result(rate);
  program_.slots[static_cast<size_t>(instruction.out)].bytes = lane_bytes(result);
  for (size_t k = 0; k < operands.size(); ++k) instruction.in[k] = operands[k].slot;
  code_of(rate).push_back(instruction);
  return {instruction.out, result, rate};
}

ClusterCompiler::Item ClusterCompiler::add_primitive(const std::string& name, Lane lane, Lane result,
                                                     const std::vector<Item>& operands) {
  Rate rate = Rate::uniform;
  for (const Item& operand : operands) rate = std::max(rate, operand.rate);
  unsigned scalars = 0;
  if (rate == Rate::tile || rate == Rate::tile_invariant) {
    for (size_t k = 0; k < operands.size(); ++k) {
      const bool scalar = operands[k].rate == Rate::uniform || operands[k].rate == Rate::row;
      scalars |= scalar ? 1u << k : 0u;
    }
  }
  const Loop loop = find_loop(name, lane, scalars);
  if (loop == nullptr) refuse("there is no loop for '{}' of {}", name, to_string(storage_of(lane)));
  return add_loop(loop, result, rate, operands);
}

ClusterCompiler::Item ClusterCompiler::round(Item item, DataType type, bool saturate) {
  const Loop loop = find_rounding(type, saturate);
  return loop == nullptr ? item : add_loop(loop, item.lane, item.rate, {item});
}

ClusterCompiler::Item ClusterCompiler::item_of(const Value* value) const {
  const auto found = items_.find(value);
  require(found != items_.end(), ErrorCode::internal, "cluster value '{}' is not known", value->name());
  return found->second;
}

void ClusterCompiler::add_constant(const Node& node) {
  const Tensor& value = node.attributes().tensor("value");
  if (value.size() != 1) refuse("constant '{}' has {} elements", node.name(), value.size());
  const Lane lane = lane_of(value.data_type());
  const int slot = new_result(Rate::uniform);
  const void* source = value.raw();
  find_load(value.data_type())(&program_.constants.back(), &source, 1);
  items_[node.output()] = {slot, lane, Rate::uniform};
}

void ClusterCompiler::add_node(const Node& node) {
  const std::string& name = node.operator_name();
  const Value* value = node.output();
  if (&node == reduction_) return;
  if (!broadcasts_to(value->type().static_shape(), shape_)) {
    refuse("'{}' of shape {} does not broadcast to {}", value->name(), to_string(value->shape()),
           to_string(shape_));
  }
  if (name == "constant") return add_constant(node);
  if (name == "broadcast_to") {
    items_[value] = item_of(node.input(0));
    return;
  }
  Item item;
  const size_t instructions_before = program_.body.size();
  if (name == "cast") {
    item = add_cast(node);
  } else if (name == "random_uniform") {
    item = add_random(node);
  } else {
    std::vector<Item> operands;
    for (const Value* input : node.inputs()) operands.push_back(item_of(input));
    if (operands.empty() || operands.size() > 3) refuse("'{}' is no primitive", name);
    const Lane lane = name == "select" ? operands.at(1).lane : operands.at(0).lane;
    // What overflows the narrow type is not finite there.
    if (name == "is_finite") operands[0] = round(operands[0], node.input(0)->data_type(), false);
    item = add_primitive(name, lane, lane_of(value->data_type()), operands);
    if (!is_half(value->data_type())) item = round(item, value->data_type(), false);
  }
  // The last instruction may write right into memory if it is this node's: a cast may need none.
  const bool own = program_.body.size() > instructions_before && program_.body.back().out == item.slot;
  if (own && item.rate == Rate::tile && storage_of(item.lane) == value->data_type()) {
    for (size_t i = 0; i < body_.outputs().size(); ++i) {
      if (body_.outputs()[i].value != value) continue;
      item.slot = add_slot({Slot::Kind::output, static_cast<int>(i), lane_bytes(item.lane)});
      program_.body.back().out = item.slot;
      direct_outputs_[value] = static_cast<int>(i);
      break;
    }
  }
  items_[value] = item;
}

ClusterCompiler::Item ClusterCompiler::add_cast(const Node& node) {
  const Item operand = item_of(node.input(0));
  const DataType from = node.input(0)->data_type();
  const DataType to = node.output()->data_type();
  if (to == from) return operand;
  if (to == DataType::boolean) return add_primitive("is_nonzero", operand.lane, Lane::f32, {operand});
  const bool saturate = node.attributes().boolean("saturate");
  Item item = operand;
  if (lane_of(to) != operand.lane) {
    item =
        add_loop(find_conversion(operand.lane, lane_of(to), saturate), lane_of(to), operand.rate, {operand});
  }
  // A store rounds by itself.
  if (is_half(to) && (node.output()->uses().empty() || from == DataType::boolean)) return item;
  // What a floating type holds beyond the limits of an integer one is saturated whatever the cast says.
  return round(item, to, saturate || (is_floating(from) && is_integer(to)));
}

ClusterCompiler::Item ClusterCompiler::add_random(const Node& node) {
  const DataType type = node.output()->data_type();
  if (node.output()->type().static_shape() != shape_) refuse("'{}' is broadcast", node.name());
  const Value* counter = node.input(0);
  if (counter->producer() != nullptr) refuse("the counter of '{}' is made inside", node.name());
  Instruction instruction{.kind = Instruction::Kind::random, .index = static_cast<int>(counter->index())};
  instruction.stream = node.attributes().integer("stream");
  instruction.bits = type == DataType::fp16 ? 11 : type == DataType::bf16 ? 8 : 24;
  instruction.out = new_result(Rate::tile);
  program_.slots[static_cast<size_t>(instruction.out)].bytes = lane_bytes(Lane::f32);
  program_.body.push_back(instruction);
  const Item item{instruction.out, Lane::f32, Rate::tile};
  if (type != DataType::fp64) return item;
  return add_loop(find_conversion(Lane::f32, Lane::f64), Lane::f64, Rate::tile, {item});
}

ClusterCompiler::Item ClusterCompiler::as_register(Item item) {
  if (item.rate != Rate::uniform && item.rate != Rate::row) return item;
  return add_loop(find_loop("copy", item.lane, 1), item.lane, Rate::tile, {item});
}

void ClusterCompiler::add_outputs() {
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const ProgramOutput& output = program_.outputs[i];
    const Value* value = body_.outputs()[i].value;
    const auto direct = direct_outputs_.find(value);
    if (output.reduction || (direct != direct_outputs_.end() && direct->second == static_cast<int>(i)))
      continue;
    Item item = as_register(item_of(value));
    item.rate = Rate::tile;  // a register that never changes is stored all the same
    add_loop(find_store(output.type), item.lane, Rate::tile, {item});
    program_.body.back().out =
        add_slot({Slot::Kind::output, static_cast<int>(i), static_cast<int64_t>(size_of(output.type))});
  }
  if (reduction_ == nullptr) return;
  program_.reduces = true;
  program_.reduction = reduction_->schema().traits.reduction;
  program_.reduced_type = reduction_->input(0)->data_type();
  program_.reduced_slot = as_register(item_of(reduction_->input(0))).slot;
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    if (!program_.outputs[i].reduction) continue;
    if (program_.reduction_output >= 0) refuse("it gives its reduction twice");
    program_.reduction_output = static_cast<int>(i);
  }
  if (program_.reduction_output < 0) refuse("nothing reads its reduction");
  const IterationSpace& space = program_.space;
  program_.result_strides.assign(space.extents.size(), 0);
  program_.results = 1;
  for (size_t axis = space.extents.size(); axis-- > 0;) {
    if (space.reduced[axis]) continue;
    program_.result_strides[axis] = program_.results;
    program_.results *= space.extents[axis];
  }
}

void ClusterCompiler::assign_buffers() {
  std::vector<Slot>& slots = program_.slots;
  constexpr int kNever = -1;
  std::vector<int> last_use(static_cast<size_t>(virtual_buffers_), kNever);
  const auto virtual_of = [&](int slot) -> int {
    return slot >= 0 && slots[static_cast<size_t>(slot)].kind == Slot::Kind::buffer
               ? slots[static_cast<size_t>(slot)].index
               : -1;
  };
  for (size_t k = 0; k < program_.body.size(); ++k) {
    for (int slot : program_.body[k].in) {
      if (virtual_of(slot) >= 0) last_use[static_cast<size_t>(virtual_of(slot))] = static_cast<int>(k);
    }
  }
  if (virtual_of(program_.reduced_slot) >= 0) {
    last_use[static_cast<size_t>(virtual_of(program_.reduced_slot))] = INT_MAX;
  }
  std::vector<int> physical(static_cast<size_t>(virtual_buffers_), -1);
  std::vector<int> free;
  const auto allocate = [&](int slot) {
    const int own = virtual_of(slot);
    if (own < 0 || physical[static_cast<size_t>(own)] >= 0) return;
    if (free.empty()) free.push_back(program_.buffers++);
    physical[static_cast<size_t>(own)] = free.back();
    free.pop_back();
  };
  std::vector<bool> pinned(static_cast<size_t>(virtual_buffers_), false);
  for (const Instruction& instruction : program_.prologue) {
    allocate(instruction.out);
    if (virtual_of(instruction.out) >= 0) pinned[static_cast<size_t>(virtual_of(instruction.out))] = true;
  }
  for (size_t k = 0; k < program_.body.size(); ++k) {
    const Instruction& instruction = program_.body[k];
    const int64_t bytes = slots[static_cast<size_t>(instruction.out)].bytes;
    const auto release = [&](bool same_size) {
      for (int slot : instruction.in) {
        const int own = virtual_of(slot);
        if (own < 0 || pinned[static_cast<size_t>(own)] ||
            last_use[static_cast<size_t>(own)] != static_cast<int>(k) ||
            (slots[static_cast<size_t>(slot)].bytes == bytes) != same_size)
          continue;
        last_use[static_cast<size_t>(own)] = kNever;  // once, though it may be read twice
        free.push_back(physical[static_cast<size_t>(own)]);
      }
    };
    release(true);
    allocate(instruction.out);
    release(false);
  }
  for (Slot& slot : slots) {
    if (slot.kind != Slot::Kind::buffer) continue;
    program_.buffer_bytes = std::max(program_.buffer_bytes, slot.bytes);
    slot.index = std::max(physical[static_cast<size_t>(slot.index)], 0);  // 0: replaced by an output
  }
  const Tiling& tiling = program_.tiling;
  const int64_t capacity = std::max(tiling.rows_per_tile() * tiling.columns_per_tile(), capacity_);
  program_.buffer_bytes = (program_.buffer_bytes * capacity + 63) / 64 * 64;
}

void ClusterCompiler::note_accesses() {
  const auto read = [&](int slot, int when) {
    if (slot < 0) return;
    const Slot& own = program_.slots[static_cast<size_t>(slot)];
    if (own.kind != Slot::Kind::input && own.kind != Slot::Kind::fixed) return;
    int& last = program_.inputs[static_cast<size_t>(own.index)].last_read;
    last = std::max(last, when);
  };
  for (size_t k = 0; k < program_.body.size(); ++k) {
    const Instruction& instruction = program_.body[k];
    for (int slot : instruction.in) read(slot, static_cast<int>(k));
    const Slot& out = program_.slots[static_cast<size_t>(instruction.out)];
    if (out.kind == Slot::Kind::output) {
      program_.outputs[static_cast<size_t>(out.index)].written = static_cast<int>(k);
    }
  }
  read(program_.reduced_slot, INT_MAX);
}

}  // namespace tessera::cpu
