#include "tessera/nn/task.h"

#include <set>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/functions.h"

namespace tessera::nn {
namespace {

Value* in_fp32(Value* value) {
  return ops::cast(value, DataType::fp32);
}

}  // namespace

Value* Values::operator[](std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, value] : values_) {
    if (known == name) return value;
    names.push_back(known);
  }
  fail(ErrorCode::invalid_argument, "there is no value '{}'{} (there are: {})", name,
       did_you_mean(name, names), fmt::join(names, ", "));
}

Measure mean_of(std::string name, Value* elements) {
  const auto count = static_cast<double>(elements->type().element_count());
  Value* sum = ops::reduce_sum(in_fp32(elements));
  return {std::move(name), sum, ops::constant_like(sum, count)};
}

Measure mean_of(std::string name, Value* elements, Value* weights) {
  Value* wide = ops::broadcast_to(in_fp32(weights), elements->shape());
  return {std::move(name), ops::reduce_sum(ops::multiply(in_fp32(elements), wide)), ops::reduce_sum(wide)};
}

Measure total_of(std::string name, const std::vector<Measure>& measures) {
  require(!measures.empty(), ErrorCode::invalid_argument, "'{}' is the total of nothing", name);
  Value* total = nullptr;
  for (const Measure& measure : measures) {
    // Where nothing counts the sum is 0, and so is the mean.
    Value* none = ops::equal(measure.weight, ops::constant_like(measure.weight, 0));
    Value* weight = ops::select(none, ops::constant_like(measure.weight, 1), measure.weight);
    Value* mean = ops::divide(measure.sum, weight);
    total = total == nullptr ? mean : ops::add(total, mean);
  }
  return {std::move(name), total, ops::constant_like(total, 1)};
}

Values add_inputs(Graph& graph, const Task& task, const SymbolBindings& sizes) {
  Values values;
  for (const Field& field : task.inputs) {
    const SymbolicShape shape = substitute(field.type.shape, sizes);
    std::set<std::string> unknown;
    for (const Dimension& extent : shape) extent.collect_symbols(unknown);
    require(unknown.empty(), ErrorCode::invalid_argument,
            "the input '{}' of {} is {}, and nothing says how large {} is", field.name, task.name,
            to_string(field.type), fmt::join(unknown, ", "));
    values.add(field.name, graph.add_input(InputRole::input, field.name, {field.type.data_type, shape}));
  }
  return values;
}

Values add_inputs(Graph& graph, const Task& task) {
  Values values;
  for (const Field& field : task.inputs)
    values.add(field.name, graph.add_input(InputRole::input, field.name, field.type));
  return values;
}

}  // namespace tessera::nn
