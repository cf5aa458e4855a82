#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/compile/dot.h"

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

void print_json(const Executable& executable, const NodeTimes& times) {
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
                             {"bytes", node.bytes},
                             {"once", node.once}});
    if (!times.nodes.empty()) json["nodes"].back()["microseconds"] = times.nodes[i].microseconds();
  }
  if (!times.nodes.empty()) json["times_recorded"] = times.recorded;
  for (const PassReport& pass : executable.passes()) {
    json["passes"].push_back({{"name", pass.name},
                              {"changed", pass.changed},
                              {"microseconds", pass.time.microseconds()},
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

void print_text(const Executable& executable, const NodeTimes& times) {
  fmt::print("Passes\n");
  for (const PassReport& pass : executable.passes()) {
    fmt::print("  {:<24} {:>8.1f} ms  nodes {} -> {}\n", pass.name, pass.time.seconds() * 1e3,
               pass.nodes_before, pass.nodes_after);
  }
  fmt::print("\nNodes ({})\n", times.nodes.empty() ? "--times measures each"
                               : times.recorded    ? "each measured by the device, in one recorded run"
                                                   : "each measured alone: the host waits for it");
  double total = 0;
  for (size_t i = 0; i < executable.nodes().size(); ++i) {
    const NodeReport& node = executable.nodes()[i];
    fmt::print("  {:<44} {:<28} {:<32} {:>9.3f} MFLOP {:>9}", node.name, node.operator_name, node.kernel,
               node.flops * 1e-6, format_bytes(node.bytes));
    if (!times.nodes.empty()) {
      const double seconds = times.nodes[i].seconds();
      const auto rate = [&](double amount) { return seconds > 0 ? amount / seconds * 1e-9 : 0; };
      fmt::print(" {:>10.1f} us {:>7.1f} GFLOP/s {:>6.1f} GB/s", seconds * 1e6, rate(node.flops),
                 rate(node.bytes));
      total += seconds;
    }
    fmt::print("\n");
    for (const CandidateReport& candidate : node.candidates) {
      if (!candidate.refused.empty()) fmt::print("      {} refused: {}\n", candidate.name, candidate.refused);
      if (candidate.microseconds >= 0)
        fmt::print("      {} {:.1f} us\n", candidate.name, candidate.microseconds);
    }
  }
  if (!times.nodes.empty()) fmt::print("  total {:.1f} ms\n", total * 1e3);
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
      NodeTimes times;
      if (arguments->times) {
        make_ready(arguments->model, compiled);
        times = compiled.executable->profile({});
      }
      arguments->json ? print_json(*compiled.executable, times) : print_text(*compiled.executable, times);
    }
  });
}

}  // namespace tessera::cli
