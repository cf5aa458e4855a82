#include "compile/step.h"

#include <cstdlib>
#include <string_view>

#include "tessera/base/progress.h"
#include "tessera/graph/operator.h"

#include "compile/communication_kernel.h"
#include "compile/kernel_failure.h"

namespace tessera {

void Step::run(Queue& queue, bool waits) {
  if (kernel == nullptr) return;
  naming_kernel(kernel_name, *node, [&] {
    kernel->run({inputs, outputs, workspace, queue, packed});
    if (waits) queue.synchronize();
  });
  note_progress();
}

bool waits_for_each_node() {
  const char* value = std::getenv("TESSERA_SYNCHRONIZE");
  return value != nullptr && std::string_view(value) == "1";
}

std::vector<Kernel*> kernel_pointers(const std::vector<Step>& steps) {
  std::vector<Kernel*> pointers;
  for (const Step& step : steps) pointers.push_back(step.kernel.get());
  return pointers;
}

KernelRequest request_for(const Node& node, const Schedule& schedule, const CompileOptions& options) {
  KernelRequest request{.node = node,
                        .frozen_inputs = {},
                        .deterministic = options.passes.deterministic,
                        .tf32 = options.passes.precision == Precision::tf32 && tf32_allowed()};
  if (node.schema().operator_class == OperatorClass::communication)
    request.communicator = group_of(node, options);
  // For what runs once nothing is packed.
  const bool runs_once = schedule.settled.contains(node.output());
  for (const Value* input : node.inputs())
    request.frozen_inputs.push_back(!runs_once && schedule.settled.contains(input));
  return request;
}

}  // namespace tessera
