#include "compile/first_runs.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "tessera/base/rounding.h"

#include "compile/queue_work.h"

namespace tessera {

void FirstRuns::expect(const KernelRequest& request) {
  int64_t bytes = 0;
  for (const Value* input : request.node.inputs()) bytes += place_of(*input);
  for (const auto& output : request.node.outputs()) bytes += place_of(*output);
  bytes_ = std::max(bytes_, bytes);
}

int64_t FirstRuns::place_of(const Value& value) const {
  return round_up(value.type().bytes(), device_.memory_alignment());
}

void FirstRuns::run(Kernel& kernel, const KernelRequest& request) {
  if (!kernel.loads_at_first_run() || !kernel.packings().empty()) return;
  try {
    char* next = memory();
    const auto take = [&](const Value& value) {
      char* own = next;
      next += place_of(value);
      return own;
    };
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Value* input : request.node.inputs()) inputs.push_back(take(*input));
    for (const auto& output : request.node.outputs()) outputs.push_back(take(*output));
    const std::shared_ptr<void> workspace = device_.allocate(std::max<int64_t>(kernel.workspace_bytes(), 1));
    const std::shared_ptr<Queue> queue = device_.queue();
    const QueueWork done(*queue);
    const std::vector<const void*> packed;
    kernel.run({inputs, outputs, workspace.get(), *queue, packed});
  } catch (const std::exception&) {  // said again by the run that counts
  }
}

char* FirstRuns::memory() {
  const std::lock_guard lock(mutex_);
  if (memory_ == nullptr) memory_ = device_.allocate(std::max<int64_t>(bytes_, 1));
  return static_cast<char*>(memory_.get());
}

}  // namespace tessera
