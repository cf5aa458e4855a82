#include "device/cuda/cluster/cluster_printer.h"

#include <algorithm>
#include <bit>
#include <map>

#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

namespace tessera::cuda {
namespace {

constexpr int kMostElements = 8;  // of one step
constexpr int64_t kAccessBytes = 16;

using backend::refuse_unless;

// What combines the elements, in kernels/reduce.cuh; empty for what is no reduction.
std::string operation_of(const Node& node) {
  switch (node.schema().traits.reduction) {
    case ReductionKind::none:
      return "";
    case ReductionKind::sum:
    case ReductionKind::mean:
      return "Sum";
    case ReductionKind::maximum:
      return "Maximum";
    case ReductionKind::minimum:
      return "Minimum";
    case ReductionKind::product:
      return "Product";
  }
  return "";
}

// The type of a value in a register.
std::string lane_type(DataType type) {
  return is_floating(type) && type != DataType::fp64 ? "float" : device_type(type);
}

// Exact whatever the number, NaN and infinities included.
std::string literal(const Tensor& value) {
  const DataType type = value.data_type();
  if (type == DataType::boolean) return value.at(0) != 0 ? "true" : "false";
  if (type == DataType::int64)
    return fmt::format("static_cast<int64>({:#x}ULL)", static_cast<uint64_t>(value.data<int64_t>()[0]));
  if (type == DataType::uint64) return fmt::format("{:#x}ULL", value.data<uint64_t>()[0]);
  if (is_integer(type)) return fmt::format("{}", static_cast<int64_t>(value.at(0)));
  if (type == DataType::fp64)
    return fmt::format("__longlong_as_double({:#x}LL)", std::bit_cast<uint64_t>(value.at(0)));
  return fmt::format("__uint_as_float({:#x}u)", std::bit_cast<uint32_t>(static_cast<float>(value.at(0))));
}

int random_bits(DataType type) {
  return type == DataType::fp16 ? 11 : type == DataType::bf16 ? 8 : 24;
}

}  // namespace

ClusterPrinter::ClusterPrinter(const Graph& body) : body_(body) {
  check_types();
  find_reductions();
  find_shape();
  find_operands();
  choose_vector();
}

void ClusterPrinter::check_types() const {
  const auto check = [](const Value* value) {
    refuse_unless(has_device_type(value->data_type()), "clusters have no registers for {}",
                  to_string(value->data_type()));
  };
  for (const auto& input : body_.inputs()) check(input.get());
  for (const auto& node : body_.nodes()) {
    for (const auto& output : node->outputs()) check(output.get());
  }
}

void ClusterPrinter::find_reductions() {
  for (const auto& node : body_.nodes()) {
    const std::string operation = operation_of(*node);
    if (operation.empty()) continue;
    refuse_unless(node->output()->uses().empty(), "something in it reads its reduction");
    for (size_t i = 0; i < body_.outputs().size(); ++i) {
      if (body_.outputs()[i].value == node->output()) reductions_.push_back({node.get(), i, operation});
    }
  }
}

void ClusterPrinter::find_shape() {
  shape_ = reductions_.empty() ? body_.outputs().at(0).value->type().static_shape()
                               : reductions_[0].node->input(0)->type().static_shape();
  for (const ClusterReduction& reduction : reductions_) {
    refuse_unless(reduction.node->input(0)->type().static_shape() == shape_ &&
                      backend::reduced_axes(*reduction.node, shape_.size()) ==
                          backend::reduced_axes(*reductions_[0].node, shape_.size()),
                  "its reductions run over different axes");
  }
  for (const Graph::Output& output : body_.outputs()) {
    const Shape own = output.value->type().static_shape();
    const bool reduced = std::any_of(reductions_.begin(), reductions_.end(), [&](const auto& reduction) {
      return reduction.node->output() == output.value;
    });
    refuse_unless(reduced || own == shape_, "its values have the shapes {} and {}", to_string(shape_),
                  to_string(own));
  }
  size_t number = 0;
  for (const auto& node : body_.nodes()) {
    const std::string& name = node->operator_name();
    refuse_unless(node->outputs().size() == 1 &&
                      (!operation_of(*node).empty() || node->schema().traits.joins_clusters ||
                       name == "constant" || node->schema().scalar),
                  "'{}' is no primitive", name);
    const Shape own = node->output()->type().static_shape();
    refuse_unless(!operation_of(*node).empty() || backend::broadcasts_to(own, shape_),
                  "'{}' of shape {} does not broadcast to {}", node->name(), to_string(own),
                  to_string(shape_));
    refuse_unless(name != "constant" || node->attributes().tensor("value").size() == 1,
                  "constant '{}' has several elements", node->name());
    if (node->schema().traits.random) {
      refuse_unless(own == shape_, "'{}' is broadcast", node->name());
      refuse_unless(node->input(0)->producer() == nullptr, "the counter of '{}' is made inside",
                    node->name());
    }
    numbers_[node->output()] = number++;
  }
}

void ClusterPrinter::find_operands() {
  std::vector<Shape> shapes;
  for (const auto& input : body_.inputs()) {
    Operand operand;
    for (const Use& use : input->uses()) {
      const bool counts = use.node->schema().traits.random;
      operand.counter |= counts;
      operand.used |= !counts;
    }
    for (const Graph::Output& output : body_.outputs()) operand.used |= output.value == input.get();
    const Shape shape = input->type().static_shape();
    refuse_unless(!operand.used || backend::broadcasts_to(shape, shape_),
                  "input '{}' of shape {} does not broadcast to {}", input->name(), to_string(shape),
                  to_string(shape_));
    shapes.push_back(operand.used ? shape : Shape{});
    operands_.push_back(operand);
  }
  const std::vector<bool> reduced = reductions_.empty()
                                        ? std::vector<bool>(shape_.size(), false)
                                        : backend::reduced_axes(*reductions_[0].node, shape_.size());
  space_ = backend::make_space(shape_, reduced, shapes);
  const std::vector<int64_t> dense = row_major_strides(space_.extents);
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].dense = space_.strides[i] == dense;
    operands_[i].pack = space_.strides[i].back() == 1;
  }
}

// As many elements as the narrowest of what is walked through fills an access with.
void ClusterPrinter::choose_vector() {
  int64_t narrowest = kAccessBytes;
  const auto meet = [&](DataType type) {
    narrowest = std::min(narrowest, static_cast<int64_t>(size_of(type)));
  };
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].used && operands_[i].pack) meet(body_.inputs()[i]->data_type());
  }
  for (const Graph::Output& output : body_.outputs()) meet(output.value->data_type());
  const auto fits = [&](int64_t width) {
    if (space_.inner() % width != 0) return false;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].used || !operands_[i].pack) continue;
      const std::vector<int64_t>& strides = space_.strides[i];
      if (std::any_of(strides.begin(), strides.end() - 1, [&](int64_t s) { return s % width != 0; }))
        return false;
    }
    return true;
  };
  vector_ = static_cast<int>(std::min<int64_t>(kAccessBytes / narrowest, kMostElements));
  while (vector_ > 1 && !fits(vector_)) vector_ /= 2;
}

std::string ClusterPrinter::index_type() const {
  // The loops run a grid's width beyond the last element.
  return space_.elements() < (int64_t{1} << 30) ? "int32" : "int64";
}

bool ClusterPrinter::is_reduction(size_t output) const {
  return std::any_of(reductions_.begin(), reductions_.end(),
                     [&](const auto& reduction) { return reduction.output == output; });
}

bool ClusterPrinter::may_overwrite(size_t output, size_t input) const {
  return !is_reduction(output) && operands_[input].used && !operands_[input].counter &&
         operands_[input].dense &&
         size_of(body_.inputs()[input]->data_type()) == size_of(body_.outputs()[output].value->data_type());
}

std::string ClusterPrinter::parameters(std::vector<Argument>& arguments) const {
  std::vector<std::string> list;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!reads(i)) continue;
    // What is broadcast is never written over, so that the compiler may keep it.
    const char* qualifier = operands_[i].dense ? "" : " __restrict__";
    list.push_back(fmt::format("const {}*{} x{}", device_type(body_.inputs()[i]->data_type()), qualifier, i));
    arguments.push_back({Argument::Kind::input, static_cast<int64_t>(i)});
  }
  for (size_t i = 0; i < body_.outputs().size(); ++i) {
    list.push_back(fmt::format("{}* y{}", device_type(body_.outputs()[i].value->data_type()), i));
    arguments.push_back({Argument::Kind::output, static_cast<int64_t>(i)});
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

bool ClusterPrinter::needs_coordinates() const {
  for (size_t i = 0; i < operands_.size(); ++i) {
    const std::vector<int64_t>& strides = space_.strides[i];
    const bool scalar = std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
    if (operands_[i].used && !operands_[i].dense && !scalar) return true;
  }
  return false;
}

bool ClusterPrinter::is_flat() const {
  const auto is_number = [](const ClusterReduction& reduction) {
    return reduction.node->output()->type().element_count() == 1;
  };
  return !needs_coordinates() && std::all_of(reductions_.begin(), reductions_.end(), is_number);
}

std::string ClusterPrinter::coordinates_of_element() const {
  if (!needs_coordinates()) return "";
  std::string text = "    Index t = e;\n";
  for (size_t axis = space_.extents.size(); axis-- > 1;) {
    text += fmt::format("    const Index c{0} = t % {1}; t /= {1};\n", axis, space_.extents[axis]);
  }
  return text + "    const Index c0 = t;\n";
}

std::string ClusterPrinter::offset_of(size_t input) const {
  if (operands_[input].dense) return "e";
  std::vector<std::string> terms;
  for (size_t axis = 0; axis < space_.extents.size(); ++axis) {
    const int64_t stride = space_.strides[input][axis];
    if (stride == 1) terms.push_back(fmt::format("c{}", axis));
    if (stride > 1) terms.push_back(fmt::format("c{} * static_cast<Index>({})", axis, stride));
  }
  return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
}

std::string ClusterPrinter::name_of(const Value* value) const {
  if (value->producer() == nullptr) return fmt::format("a{}", value->index());
  if (value->producer()->operator_name() == "broadcast_to") return name_of(value->producer()->input(0));
  return fmt::format("v{}", numbers_.at(value));
}

std::string ClusterPrinter::expression(const Node& node) const {
  const std::string& name = node.operator_name();
  if (name == "constant") return literal(node.attributes().tensor("value"));
  if (name == "random_uniform") return fmt::format("u{}[v]", numbers_.at(node.output()));
  if (name == "cast") {
    if (node.output()->data_type() == DataType::boolean)
      return fmt::format("op_is_nonzero({})", name_of(node.input(0)));
    const char* saturate = node.attributes().boolean("saturate") ? "" : ", false";
    return fmt::format("op_cast<{}{}>({})", device_type(node.output()->data_type()), saturate,
                       name_of(node.input(0)));
  }
  if (name == "is_finite") {
    // What overflows a narrow type is not finite there.
    return fmt::format("op_is_finite(rounded<{}>({}))", device_type(node.input(0)->data_type()),
                       name_of(node.input(0)));
  }
  if (is_half(node.output()->data_type()) && (name == "tanh" || name == "sigmoid"))
    return fmt::format("{}_in_half({})", name, name_of(node.input(0)));
  std::vector<std::string> operands;
  for (const Value* input : node.inputs()) operands.push_back(name_of(input));
  return fmt::format("op_{}({})", name, fmt::join(operands, ", "));
}

std::vector<ClusterLoad> ClusterPrinter::loads() const {
  std::vector<ClusterLoad> result;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!operands_[i].used) continue;
    const DataType type = body_.inputs()[i]->data_type();
    const std::vector<int64_t>& strides = space_.strides[i];
    ClusterLoad load{.input = i, .name = {}, .type = {}, .expression = {}};
    // Of one axis alone rows and columns are merged.
    load.per_column = std::all_of(strides.begin(), strides.end() - (strides.size() > 1 ? 1 : 0),
                                  [](int64_t s) { return s == 0; });
    if (operands_[i].pack) {
      load.name = fmt::format("p{}", i);
      load.type = fmt::format("Pack<{}, V>", device_type(type));
      load.expression = fmt::format("load<V>(x{} + ({}))", i, offset_of(i));
    } else {
      load.name = fmt::format("a{}", i);
      load.type = lane_type(type);
      load.expression = fmt::format("widen(x{}[{}])", i, offset_of(i));
    }
    result.push_back(std::move(load));
  }
  return result;
}

std::string ClusterPrinter::random_numbers() const {
  std::string text;
  for (const auto& node : body_.nodes()) {
    if (!node->schema().traits.random) continue;
    text += fmt::format("    float u{0}[V]; uniform<{1}, V>(x{2}, {3}u, e, u{0});\n",
                        numbers_.at(node->output()), random_bits(node->output()->data_type()),
                        node->input(0)->index(), static_cast<uint32_t>(node->attributes().integer("stream")));
  }
  return text;
}

std::string ClusterPrinter::step(bool rows) const {
  std::string text;
  for (const ClusterLoad& load : loads())
    text += fmt::format("    const auto {} = {};\n", load.name, load.expression);
  return text + work(rows) + stores("store<V>");
}

std::string ClusterPrinter::work(bool rows) const {
  std::string text = random_numbers();
  for (size_t i = 0; i < body_.outputs().size(); ++i) {
    if (!is_reduction(i))
      text += fmt::format("    Pack<{}, V> q{};\n", device_type(body_.outputs()[i].value->data_type()), i);
  }
  text += "#pragma unroll\n    for (int v = 0; v < V; ++v) {\n";
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].used && operands_[i].pack)
      text += fmt::format("      const auto a{0} = widen(p{0}.at[v]);\n", i);
  }
  for (const auto& node : body_.nodes()) {
    if (node->operator_name() == "broadcast_to" || !operation_of(*node).empty()) continue;
    text += fmt::format("      const {} v{} = {};\n", lane_type(node->output()->data_type()),
                        numbers_.at(node->output()), expression(*node));
  }
  for (size_t i = 0; i < body_.outputs().size(); ++i) {
    if (is_reduction(i)) continue;
    const Value* value = body_.outputs()[i].value;
    text += fmt::format("      q{}.at[v] = narrow<{}>({});\n", i, device_type(value->data_type()),
                        name_of(value));
  }
  for (size_t k = 0; k < reductions_.size(); ++k) {
    const Value* reduced = reductions_[k].node->input(0);
    text += fmt::format("      r{0}[{1}] = {2}::combine(r{0}[{1}], static_cast<Accumulator<{3}>>({4}));\n", k,
                        rows ? "0" : "v", reductions_[k].operation, device_type(reduced->data_type()),
                        name_of(reduced));
  }
  return text + "    }\n";
}

std::string ClusterPrinter::stores(std::string_view function) const {
  std::string text;
  for (size_t i = 0; i < body_.outputs().size(); ++i) {
    if (!is_reduction(i)) text += fmt::format("    {0}(y{1} + e, q{1});\n", function, i);
  }
  return text;
}

}  // namespace tessera::cuda
