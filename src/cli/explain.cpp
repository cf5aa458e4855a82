#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/compile/dot.h"
#include "tessera/train/checkpoint.h"

#include "cli/model_options.h"

namespace tessera::cli {
namespace {

struct ExplainArguments {
  ModelArguments model;
  bool json = false;
  bool dot = false;
  bool text = false;
  bool times = false;
};

std::vector<double> measure(CompiledModel& compiled, int64_t classes) {
  auto variables = std::make_shared<Variables>(compiled.device);
  train::initialise_variables(*variables, compiled.step.variables, 1);
  compiled.executable->bind(variables);
  const auto inputs = made_up_inputs(*compiled.step.graph, classes);
  compiled.executable->run(inputs);  // warm-up
  return compiled.executable->profile(inputs);
}

void print_json(const Executable& executable, const std::vector<double>& times) {
  nlohmann::json json = {{"nodes", nlohmann::json::array()}, {"passes", nlohmann::json::array()}};
  for (size_t i = 0; i < executable.nodes().size(); ++i) {
    const NodeReport& node = executable.nodes()[i];
    auto candidates = nlohmann::json::array();
    for (const CandidateReport& candidate : node.candidates) {
      nlohmann::json entry = {{"name", candidate.name}};
      if (!candidate.refused.empty()) {
        entry["refused"] = candidate.refused;
      } else if (candidate.microseconds >= 0) {
        entry["microseconds"] = candidate.microseconds;
      }
      candidates.push_back(std::move(entry));
    }
    json["nodes"].push_back({{"name", node.name},
                             {"operator", node.operator_name},
                             {"kernel", node.kernel},
                             {"candidates", std::move(candidates)},
                             {"flops", node.flops},
                             {"bytes", node.bytes}});
    if (!times.empty()) json["nodes"].back()["microseconds"] = times[i];
  }
  for (const PassReport& pass : executable.passes()) {
    json["passes"].push_back({{"name", pass.name},
                              {"changed", pass.changed},
                              {"microseconds", pass.microseconds},
                              {"nodes_before", pass.nodes_before},
                              {"nodes_after", pass.nodes_after}});
  }
  const MemoryPlan& plan = executable.memory_plan();
  json["memory"] = {{"peak_bytes", plan.peak_bytes},
                    {"lower_bound_bytes", plan.lower_bound_bytes},
                    {"variable_bytes", plan.variable_bytes}};
  json["compile_seconds"] = executable.compile_seconds();
  fmt::print("{}\n", json.dump(1));
}

void print_text(const Executable& executable, const std::vector<double>& times) {
  fmt::print("Passes\n");
  for (const PassReport& pass : executable.passes()) {
    fmt::print("  {:<24} {:>8.1f} ms  nodes {} -> {}\n", pass.name, pass.microseconds / 1e3,
               pass.nodes_before, pass.nodes_after);
  }
  fmt::print("\nNodes{}\n", times.empty() ? " (--times measures each)" : "");
  double total = 0;
  for (size_t i = 0; i < executable.nodes().size(); ++i) {
    const NodeReport& node = executable.nodes()[i];
    fmt::print("  {:<44} {:<28} {:<32} {:>9.3f} MFLOP {:>9}", node.name, node.operator_name, node.kernel,
               node.flops * 1e-6, format_bytes(node.bytes));
    if (!times.empty()) {
      const double seconds = times[i] * 1e-6;
      fmt::print(" {:>10.1f} us {:>7.1f} GFLOP/s {:>6.1f} GB/s", times[i], node.flops / seconds * 1e-9,
                 node.bytes / seconds * 1e-9);
      total += times[i];
    }
    fmt::print("\n");
    for (const CandidateReport& candidate : node.candidates) {
      if (!candidate.refused.empty()) fmt::print("      {} refused: {}\n", candidate.name, candidate.refused);
      if (candidate.microseconds >= 0)
        fmt::print("      {} {:.1f} us\n", candidate.name, candidate.microseconds);
    }
  }
  if (!times.empty()) fmt::print("  total {:.1f} ms\n", total * 1e-3);
  const MemoryPlan& plan = executable.memory_plan();
  fmt::print("\nMemory: arena {} (lower bound of this schedule {}), parameters and states {}\n",
             format_bytes(static_cast<double>(plan.peak_bytes)),
             format_bytes(static_cast<double>(plan.lower_bound_bytes)),
             format_bytes(static_cast<double>(plan.variable_bytes)));
  for (const MemoryBlock* block : peak_blocks(plan, 8)) {
    fmt::print("  {:>10}  {}\n", format_bytes(static_cast<double>(block->bytes)), block->name);
  }
  fmt::print("Compiled in {:.2f} s\n", executable.compile_seconds());
}

}  // namespace

void add_explain(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "explain", "Show what the compiler makes of a network: passes, nodes, candidate kernels, memory plan");
  command->footer(
      "Examples:\n  tessera explain resnet50 --train --times\n  tessera explain lenet --dot | dot -Tsvg > "
      "lenet.svg");
  auto arguments = std::make_shared<ExplainArguments>();
  add_model_arguments(*command, arguments->model);
  command->add_flag("--json", arguments->json, "Print nodes, candidates and memory as JSON");
  command->add_flag("--dot", arguments->dot, "Print the compiled graph for Graphviz");
  command->add_flag("--text", arguments->text, "Print the compiled graph as text");
  command->add_flag("--times", arguments->times, "Run it, and add each node's time and rates");
  command->callback([arguments] {
    CompiledModel compiled = compile_model(arguments->model);
    if (arguments->dot) {
      fmt::print("{}", to_dot(compiled.executable->graph()));
    } else if (arguments->text) {
      fmt::print("{}", print(compiled.executable->graph()));
    } else {
      const int64_t classes = models::describe(arguments->model.model).defaults.classes;
      std::vector<double> times;
      if (arguments->times)
        times = measure(compiled, arguments->model.classes > 0 ? arguments->model.classes : classes);
      arguments->json ? print_json(*compiled.executable, times) : print_text(*compiled.executable, times);
    }
  });
}

}  // namespace tessera::cli
