#include "kernel_fuzz/problem.h"

#include <fmt/format.h>

#include "kernel_fuzz/pattern_problems.h"
#include "kernel_fuzz/problem_maker.h"
#include "support/tf32.h"

namespace tessera::testing {
namespace {

const NodeMakers& node_makers() {
  static const NodeMakers makers = [] {
    NodeMakers all;
    for (NodeMakers some :
         {contraction_makers(), normalization_makers(), pooling_makers(), reduction_makers(),
          movement_makers(), indexing_makers(), source_makers(), communication_makers()})
      all.merge(some);
    return all;
  }();
  return makers;
}

bool is_drawn_elementwise(const OperatorSchema& schema) {
  return schema.operator_class == OperatorClass::elementwise && !node_makers().contains(schema.name) &&
         !schema.examples.empty();
}

// Contractions have the most kernels, with the most conditions.
std::vector<const OperatorSchema*> weighted_operators() {
  std::vector<const OperatorSchema*> result;
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    if (schema->operator_class == OperatorClass::fused) continue;
    const bool many = schema->operator_class == OperatorClass::contraction;
    result.insert(result.end(),
                  many                                                   ? 12
                  : schema->operator_class == OperatorClass::elementwise ? 1
                                                                         : 3,
                  schema);
  }
  return result;
}

KernelProblem draw_operator_problem(Draw& draw) {
  static const std::vector<const OperatorSchema*> operators = weighted_operators();
  const OperatorSchema& schema = *draw.pick(operators);
  ProblemMaker maker(draw);
  // Some functions give the value back that has nothing to do: they are tried again.
  while (maker.graph().nodes().empty()) {
    if (is_drawn_elementwise(schema)) {
      make_elementwise(maker, schema);
    } else {
      node_makers().at(schema.name)(maker);
    }
  }
  KernelProblem problem;
  problem.graph = maker.take_graph();
  problem.node = problem.graph->nodes().back().get();
  const bool freezes = draw.chance(40);
  for (const Value* input : problem.node->inputs()) {
    problem.inputs.push_back(maker.contents(input));
    problem.frozen_inputs.push_back(freezes && draw.chance(60));
  }
  draw_settings(draw, problem);
  return problem;
}

}  // namespace

void draw_settings(Draw& draw, KernelProblem& problem) {
  problem.deterministic = draw.chance(70);
  problem.tf32 = draw.chance(30);
  problem.threads = static_cast<int>(draw.pick(std::vector<int64_t>{1, 2, 2, 8, 16}));
  if (!problem.tf32) return;
  for (Tensor& input : problem.inputs) input = rounded_to_tf32(input);
}

std::string KernelProblem::description() const {
  std::string frozen;
  for (size_t i = 0; i < frozen_inputs.size(); ++i) {
    if (frozen_inputs[i]) frozen += fmt::format(" {}", i);
  }
  std::string types;
  for (const Value* input : node->inputs()) types += " " + to_string(input->type());
  return fmt::format("{}\n  of{}\n  {} thread{}, {}{}{}{}", print(*node), types, threads,
                     threads == 1 ? "" : "s", deterministic ? "deterministic" : "not deterministic",
                     tf32 ? ", TF32" : "", frozen.empty() ? "" : ", frozen inputs:", frozen);
}

std::vector<KernelProblem> draw_problems(uint64_t seed, const Device& device) {
  Draw draw(seed);
  if (draw.chance(60)) {
    std::vector<KernelProblem> one;
    one.push_back(draw_operator_problem(draw));
    return one;
  }
  return draw_pattern_problems(draw, device);
}

std::vector<std::string> drawn_operators() {
  std::vector<std::string> names{"fused"};
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    if (node_makers().contains(schema->name) || is_drawn_elementwise(*schema)) names.push_back(schema->name);
  }
  return names;
}

}  // namespace tessera::testing
