// The bound of the comparison can fail: what a wrong kernel would make is told from what rounding makes.
#include "graph_fuzz/reference.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/ops/functions.h"

#include "graph_fuzz/configuration.h"
#include "graph_fuzz/random_graph.h"

namespace tessera::testing {
namespace {

enum class Fault { zeros, left_out_rows, left_out_operand };

// 0 for the first half of the rows of the value, and 1.
Value* mask_of(Value* value) {
  const Shape shape = value->type().static_shape();
  Shape rows(shape.size(), 1);
  rows[0] = shape[0];
  Tensor mask(value->data_type(), rows);
  for (int64_t i = shape[0] / 2; i < shape[0]; ++i) mask.set(i, 1);
  return ops::constant(value->graph(), std::move(mask));
}

// The graph with a fault in one node: its result is zeros, or its first rows are, or its last operand is
// taken for zeros. Null where it has no such rows or operand.
std::unique_ptr<Graph> with_fault(const Graph& graph, size_t place, Fault fault) {
  std::unique_ptr<Graph> wrong = graph.clone();
  Node* node = std::next(wrong->nodes().begin(), static_cast<std::ptrdiff_t>(place))->get();
  Value* result = node->output();
  if (!is_floating(result->data_type()) || result->type().element_count() == 0) return nullptr;
  if (fault == Fault::left_out_operand) {
    Value* operand = node->inputs().empty() ? nullptr : node->inputs().back();
    if (node->inputs().size() < 2 || !is_floating(operand->data_type())) return nullptr;
    wrong->set_input(node, node->inputs().size() - 1, ops::zeros_like(operand));
  } else if (fault == Fault::zeros) {
    wrong->replace_all_uses(result, ops::zeros_like(result));
  } else {
    if (result->type().rank() == 0 || result->type().static_shape()[0] < 2) return nullptr;
    Value* copy =
        wrong->add_node(node->operator_name(), node->operands(node->inputs()), node->attributes())->output();
    wrong->replace_all_uses(result, ops::multiply(copy, mask_of(copy)));
  }
  wrong->sort();
  return wrong;
}

// Whether an output is off by some hundredths of its largest element.
bool is_plainly_wrong(const Results& actual, const Results& expected) {
  for (const auto& [name, tensor] : expected) {
    double largest = 0;
    double worst = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      largest = std::max(largest, std::abs(tensor.at(i)));
      worst = std::max(worst, std::abs(actual.at(name).at(i) - tensor.at(i)));
    }
    if (std::isfinite(worst) && largest > 1e-3 && worst > 0.03 * largest) return true;
  }
  return false;
}

struct Counts {
  int wrong = 0;
  int found = 0;
};

// Faults in the graph of a seed in that precision, unless rounding alone is taken for one.
void count_faults(uint64_t seed, Precision precision, Counts& counts) {
  const RandomGraph own = random_graph(seed);
  PassOptions options;
  options.precision = precision;
  options.fuse = false;
  const std::unique_ptr<Graph> lowered = own.graph->clone();
  run_pipeline(*lowered, pipeline(options), {options, {}}, {});
  const auto difference = [&](const Graph& graph) {
    const Shake rounding{.seed = 777, .tf32 = precision == Precision::tf32};
    return difference_to_reference(interpret(graph, own.values, rounding), *own.graph, *lowered, own.values,
                                   precision);
  };
  EXPECT_EQ(difference(*lowered), "") << "seed " << seed << " in " << to_string(precision);
  const Results expected = interpret(*lowered, own.values);
  const Random random(seed, 80);
  for (uint64_t i = 0; i < 3; ++i) {
    const size_t place = random.below(i, lowered->nodes().size());
    for (const Fault fault : {Fault::zeros, Fault::left_out_rows, Fault::left_out_operand}) {
      const std::unique_ptr<Graph> wrong = with_fault(*lowered, place, fault);
      if (wrong == nullptr || !is_plainly_wrong(interpret(*wrong, own.values), expected)) continue;
      ++counts.wrong;
      if (!difference(*wrong).empty()) ++counts.found;
    }
  }
}

class GraphFuzzBound : public ::testing::TestWithParam<Precision> {};

// Not all: a fault before a kink or of a division by nearly nothing is hidden by what rounding may do
// there.
TEST_P(GraphFuzzBound, FindsFaults) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 12; ++seed) count_faults(seed, GetParam(), counts);
  std::cout << "found " << counts.found << " of " << counts.wrong << " faults\n";
  EXPECT_GE(counts.wrong, 15);
  EXPECT_GE(counts.found, 0.9 * counts.wrong);
}

INSTANTIATE_TEST_SUITE_P(Precision, GraphFuzzBound,
                         ::testing::Values(Precision::fp32, Precision::tf32, Precision::fp16,
                                           Precision::bf16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace tessera::testing
