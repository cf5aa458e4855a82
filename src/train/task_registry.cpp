#include "tessera/train/task_registry.h"

namespace tessera::train {

Registry<TaskDescription>& tasks() {
  static Registry<TaskDescription> registry("task");
  return registry;
}

}  // namespace tessera::train
