#include "tessera/optim/registry.h"

namespace tessera::optim {

Registry<OptimizerDescription>& optimizers() {
  static Registry<OptimizerDescription> registry("optimizer");
  return registry;
}

Registry<ScheduleDescription>& schedules() {
  static Registry<ScheduleDescription> registry("schedule");
  return registry;
}

}  // namespace tessera::optim
