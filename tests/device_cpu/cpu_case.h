// Small graphs on the CPU beside the reference interpreter.
#pragma once

#include "support/device_case.h"

namespace tessera::testing {

using CpuRun = DeviceRun;

inline CpuRun run_on_cpu(const Case& own, bool fuse = false) {
  return run_on(Device::cpu(), own, fuse);
}

inline void expect_as_reference(const Case& own) {
  expect_as_reference(Device::cpu(), own);
}

inline void expect_as_reference(const Case& own, const Tolerances& tolerances, bool fuse = false) {
  expect_as_reference(Device::cpu(), own, tolerances, fuse);
}

inline void expect_as_reference(const Case& own, OperatorClass operator_class, const Problem& problem,
                                bool fuse = false) {
  expect_as_reference(Device::cpu(), own, operator_class, problem, fuse);
}

}  // namespace tessera::testing
