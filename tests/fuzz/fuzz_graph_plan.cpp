// Any text that is a graph can be compiled or is refused with an Error: its symbols take numbers, the passes
// rewrite it, storage is planned for it, and where it is small the reference loops run it.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/compile/executable.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

#include "fuzz.h"

namespace {

using namespace tessera;

// What a run takes stays far below the time limit of one input.
constexpr double kMostElements = 1 << 12;
constexpr double kMostWork = 1 << 16;

// An invariant of ours that text can break is a fault like any crash.
void check_is_refusal(const Error& error) {
  if (error.code() != ErrorCode::internal) return;
  std::fprintf(stderr, "internal error: %s\n", error.what());
  std::abort();
}

bool is_small(const Graph& graph) {
  double elements = 0;
  double work = 0;
  for (const auto& input : graph.inputs()) elements += static_cast<double>(input->type().element_count());
  for (const auto& node : graph.nodes()) {
    work += cost_of(*node).flops;
    for (const auto& output : node->outputs())
      elements += static_cast<double>(output->type().element_count());
    for (const auto& [name, attribute] : node->attributes().entries()) {
      // A loop may go once around what an attribute counts.
      if (attribute.kind() == AttributeKind::shape)
        elements += static_cast<double>(element_count(to_static(node->attributes().shape(name))));
    }
    if (node->body() != nullptr && !is_small(*node->body())) return false;
  }
  return elements <= kMostElements && work <= kMostWork;
}

void plan_and_run(const Graph& symbolic) {
  SymbolBindings bindings;
  for (const std::string& symbol : free_symbols(symbolic))
    bindings[symbol] = static_cast<int64_t>(2 + bindings.size());
  const auto graph = specialize(symbolic, bindings);
  verify(*graph);
  if (is_small(*graph)) {
    std::vector<Tensor> inputs;
    for (const auto& input : graph->inputs())
      inputs.emplace_back(input->data_type(), input->type().static_shape());
    (void)run_reference(*graph, inputs);
  }
  (void)compile(*graph, Device::null())->memory_plan();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    plan_and_run(*parse_graph({reinterpret_cast<const char*>(data), size}));
  } catch (const Error& error) {
    check_is_refusal(error);
  }
  return 0;
}
