#include "cli/explanation.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/text.h"
#include "tessera/compile/limit.h"

namespace tessera::cli {
namespace {

// Of nodes with a kernel that runs every time: of all, or of one operator.
struct Total {
  size_t nodes = 0;
  double seconds = 0;
  double limit = 0;  // nodes without a known limit add nothing

  void add(double measured, const std::optional<NodeLimit>& of_node) {
    ++nodes;
    seconds += measured;
    if (of_node.has_value()) limit += of_node->seconds;
  }
};

// How much of a limit was reached; 0 for what takes no time.
double share(double limit, double seconds) {
  return seconds > 0 ? limit / seconds : 0;
}

bool is_counted(const NodeReport& node) {
  return !node.once && !node.candidates.empty();
}

Total add_up(const Explanation& explained) {
  Total total;
  const std::vector<NodeReport>& nodes = explained.executable.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (is_counted(nodes[i])) total.add(explained.seconds(i), limit_of(nodes[i], explained.device));
  }
  return total;
}

// Which kernel it is, and of which.
nlohmann::json choice_json(const NodeReport& node) {
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
  return {{"name", node.name},
          {"operator", node.operator_name},
          {"kernel", node.kernel},
          {"candidates", std::move(candidates)}};
}

nlohmann::json node_json(const Explanation& explained, size_t index) {
  const NodeReport& node = explained.executable.nodes()[index];
  nlohmann::json json = choice_json(node);
  json["flops"] = node.flops;
  json["bytes"] = node.bytes;
  json["once"] = node.once;
  if (!node.memory.empty()) json["memory"] = node.memory;
  if (!node.lane.empty()) json["lane"] = node.lane;
  if (node.arithmetic.has_value()) json["arithmetic"] = to_string(*node.arithmetic);
  if (explained.timed()) json["microseconds"] = explained.seconds(index) * 1e6;
  if (const auto limit = limit_of(node, explained.device)) {
    json["limit_microseconds"] = limit->seconds * 1e6;
    json["limited_by"] = limit->by_memory ? "memory" : "arithmetic";
    if (explained.timed()) json["share_of_limit"] = share(limit->seconds, explained.seconds(index));
  }
  return json;
}

nlohmann::json device_json(const Explanation& explained) {
  const DeviceDescription& device = explained.device;
  nlohmann::json json = {{"name", device.name}, {"model", device.model}};
  if (!explained.fallback.empty()) json["fallback"] = explained.fallback;
  if (device.bytes_per_second > 0) json["bytes_per_second"] = device.bytes_per_second;
  for (const auto& [precision, flops] : device.flops_per_second) {
    json["flops_per_second"][std::string(to_string(precision))] = flops;
  }
  return json;
}

nlohmann::json total_json(const Explanation& explained) {
  const Total total = add_up(explained);
  nlohmann::json json = {{"nodes", total.nodes}};
  if (explained.timed()) json["microseconds"] = total.seconds * 1e6;
  if (explained.knows_limits()) json["limit_microseconds"] = total.limit * 1e6;
  if (explained.timed() && explained.knows_limits()) {
    json["share_of_limit"] = share(total.limit, total.seconds);
  }
  return json;
}

nlohmann::json workspace_json(const Explanation& explained) {
  const std::vector<WorkspaceUse> uses = explained.executable.workspace()->uses();
  const WorkspaceNeeds needs = needs_of(uses);
  nlohmann::json json = {{"shared_bytes", needs.shared_bytes},
                         {"alone_bytes", needs.alone_bytes},
                         {"executables", nlohmann::json::array()}};
  for (size_t i = 0; i < uses.size(); ++i)
    json["executables"].push_back({{"batch", explained.batches[i]}, {"bytes", uses[i].bytes}});
  return json;
}

}  // namespace

nlohmann::json to_json(const Explanation& explained) {
  const Executable& executable = explained.executable;
  nlohmann::json json = {{"device", device_json(explained)},
                         {"nodes", nlohmann::json::array()},
                         {"replaced", nlohmann::json::array()},
                         {"passes", nlohmann::json::array()},
                         {"total", total_json(explained)}};
  for (size_t i = 0; i < executable.nodes().size(); ++i) json["nodes"].push_back(node_json(explained, i));
  for (const NodeReport& node : executable.replaced()) json["replaced"].push_back(choice_json(node));
  if (explained.timed()) json["times_recorded"] = explained.times.recorded;
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
                    {"variable_bytes", plan.variable_bytes},
                    {"settled_variable_bytes", plan.settled_variable_bytes},
                    {"persistent_bytes", plan.persistent_bytes},
                    {"packed_bytes", plan.packed_bytes},
                    {"derived", nlohmann::json::array()},
                    {"workspace", workspace_json(explained)}};
  for (const DerivedValue& value : plan.derived) {
    nlohmann::json derived = {{"name", value.name}, {"type", value.type}, {"bytes", value.bytes}};
    if (!value.packed_for.empty()) derived["packed_for"] = value.packed_for;
    json["memory"]["derived"].push_back(std::move(derived));
  }
  json["compile_seconds"] = executable.compile_seconds();
  return json;
}

namespace {

void print_candidates(const NodeReport& node) {
  for (const CandidateReport& candidate : node.candidates) {
    if (!candidate.refused.empty()) fmt::print("      {} refused: {}\n", candidate.name, candidate.refused);
    if (candidate.microseconds >= 0)
      fmt::print("      {} {:.1f} us\n", candidate.name, candidate.microseconds);
  }
}

void print_node(const Explanation& explained, size_t index) {
  const NodeReport& node = explained.executable.nodes()[index];
  fmt::print("  {:<44} {:<28} {:<32} {:>9.3f} MFLOP {:>9}", node.name, node.operator_name, node.kernel,
             node.flops * 1e-6, format_bytes(node.bytes));
  const double seconds = explained.seconds(index);
  if (explained.timed()) {
    const auto rate = [&](double amount) { return seconds > 0 ? amount / seconds * 1e-9 : 0; };
    fmt::print(" {:>10.1f} us {:>7.1f} GFLOP/s {:>6.1f} GB/s", seconds * 1e6, rate(node.flops),
               rate(node.bytes));
  }
  if (const auto limit = limit_of(node, explained.device); limit.has_value() && !node.candidates.empty()) {
    const char* by = limit->by_memory ? "memory" : "arithmetic";
    if (explained.timed()) {
      fmt::print(" {:>4.0f} % of its limit ({})", 100 * share(limit->seconds, seconds), by);
    } else {
      fmt::print(" {:>10.1f} us at least ({})", limit->seconds * 1e6, by);
    }
  }
  fmt::print("\n");
  if (!node.memory.empty()) fmt::print("      {}\n", node.memory);
  if (!node.lane.empty()) fmt::print("      beside what follows, {}\n", node.lane);
  print_candidates(node);
}

void print_replaced(const std::vector<NodeReport>& nodes) {
  if (nodes.empty()) return;
  fmt::print("\nNodes of which the parts run\n");
  for (const NodeReport& node : nodes) {
    fmt::print("  {:<44} {:<28} {}\n", node.name, node.operator_name, node.kernel);
    print_candidates(node);
  }
}

void print_total(const Explanation& explained, const std::string& name, const Total& total) {
  fmt::print("  {:<44} {:>4} nodes", name, total.nodes);
  if (explained.timed()) fmt::print(" {:>9.3f} ms", total.seconds * 1e3);
  if (explained.knows_limits()) {
    fmt::print(" {:>9.3f} ms at least", total.limit * 1e3);
    if (explained.timed()) fmt::print(" {:>4.0f} %", 100 * share(total.limit, total.seconds));
  }
  fmt::print("\n");
}

// Operators by their time, or by their limit.
void print_totals(const Explanation& explained) {
  if (!explained.timed() && !explained.knows_limits()) return;
  std::map<std::string, Total> by_operator;
  const std::vector<NodeReport>& nodes = explained.executable.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_counted(nodes[i])) continue;
    by_operator[nodes[i].operator_name].add(explained.seconds(i), limit_of(nodes[i], explained.device));
  }
  std::vector<std::pair<std::string, Total>> sorted(by_operator.begin(), by_operator.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.seconds, a.second.limit) > std::pair(b.second.seconds, b.second.limit);
  });
  fmt::print("\nOperators\n");
  for (const auto& [name, total] : sorted) print_total(explained, name, total);
  print_total(explained, "total", add_up(explained));
  if (!explained.knows_limits()) return;
  std::vector<std::string> peaks;
  for (const auto& [precision, flops] : explained.device.flops_per_second) {
    peaks.push_back(fmt::format("{:.0f} TFLOP/s {}", flops * 1e-12, to_string(precision)));
  }
  fmt::print("  limits of the hardware: {:.2f} TB/s, {}\n", explained.device.bytes_per_second * 1e-12,
             fmt::join(peaks, ", "));
}

// The largest of them.
void print_derived(const MemoryPlan& plan) {
  if (plan.derived.empty()) return;
  std::vector<DerivedValue> values = plan.derived;
  std::stable_sort(values.begin(), values.end(),
                   [](const DerivedValue& a, const DerivedValue& b) { return a.bytes > b.bytes; });
  constexpr size_t kShown = 8;
  fmt::print(
      "\nMade once of parameters and constants, and shared by all executables over them: {} in {} values",
      format_bytes(static_cast<double>(plan.persistent_bytes)), values.size());
  if (plan.packed_bytes > 0)
    fmt::print(", of them packed for kernels {}", format_bytes(static_cast<double>(plan.packed_bytes)));
  fmt::print("\n");
  for (size_t i = 0; i < std::min(kShown, values.size()); ++i) {
    fmt::print("  {:>10}  {} {}{}\n", format_bytes(static_cast<double>(values[i].bytes)), values[i].name,
               values[i].type, values[i].packed_for.empty() ? "" : ", packed for " + values[i].packed_for);
  }
}

void print_workspace(const Explanation& explained) {
  const std::vector<WorkspaceUse> uses = explained.executable.workspace()->uses();
  if (uses.size() < 2) return;
  const WorkspaceNeeds needs = needs_of(uses);
  fmt::print("\nWorkspace: {} for {} executables, {} if each had its own\n",
             format_bytes(static_cast<double>(needs.shared_bytes)), uses.size(),
             format_bytes(static_cast<double>(needs.alone_bytes)));
  for (size_t i = 0; i < uses.size(); ++i) {
    fmt::print("  {:>10}  batch {}\n", format_bytes(static_cast<double>(uses[i].bytes)),
               explained.batches[i]);
  }
}

}  // namespace

void print_text(const Explanation& explained) {
  const Executable& executable = explained.executable;
  fmt::print("{}\n\nPasses\n", device_summary(explained.device, explained.fallback));
  for (const PassReport& pass : executable.passes()) {
    fmt::print("  {:<24} {:>8.1f} ms  nodes {} -> {}\n", pass.name, pass.time.seconds() * 1e3,
               pass.nodes_before, pass.nodes_after);
  }
  fmt::print("\nNodes ({})\n", !explained.timed()         ? "--times measures each"
                               : explained.times.recorded ? "each measured by the device, in one recorded run"
                                                          : "each measured alone: the host waits for it");
  for (size_t i = 0; i < executable.nodes().size(); ++i) print_node(explained, i);
  print_replaced(executable.replaced());
  print_totals(explained);
  const MemoryPlan& plan = executable.memory_plan();
  fmt::print(
      "\nMemory: arena {} (lower bound of this schedule {}), parameters and states {}, what is made of them "
      "once {}\n",
      format_bytes(static_cast<double>(plan.peak_bytes)),
      format_bytes(static_cast<double>(plan.lower_bound_bytes)),
      format_bytes(static_cast<double>(plan.variable_bytes)),
      format_bytes(static_cast<double>(plan.persistent_bytes)));
  for (const MemoryBlock* block : peak_blocks(plan, 8)) {
    fmt::print("  {:>10}  {} {}\n", format_bytes(static_cast<double>(block->bytes)), block->name,
               block->type);
  }
  print_derived(plan);
  print_workspace(explained);
  fmt::print("Compiled in {:.2f} s\n", executable.compile_seconds());
}

}  // namespace tessera::cli
