#include "tessera/train/task_registry.h"

#include "tessera/base/error.h"

namespace tessera::train {

Registry<TaskDescription>& tasks() {
  static Registry<TaskDescription> registry("task");
  return registry;
}

const TaskDescription& default_task(const Registry<TaskDescription>& among) {
  const TaskDescription* found = nullptr;
  for (const TaskDescription* task : among.all()) {
    if (!task->is_default) continue;
    require(found == nullptr, ErrorCode::internal, "the tasks '{}' and '{}' are both the default one",
            found == nullptr ? "" : found->name, task->name);
    found = task;
  }
  require(found != nullptr, ErrorCode::internal, "no task is the default one");
  return *found;
}

}  // namespace tessera::train
