// Which seeds are tried, and what is said when one of them fails.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernel_fuzz/problem.h"

namespace tessera::testing {

// Takes "--seeds FIRST-LAST" off the command line, or the environment's TESSERA_KERNEL_SEEDS: those seeds are
// tried however long it takes. Returns false, and says why, for anything else that is not GoogleTest's.
bool read_seeds(int argc, char** argv);

// Gives each problem of one seed after another to `check`: of the seeds that were asked for, or of as many
// from 1 on as fit into so many seconds. Ends behind the first seed of which the test has failed or which
// threw, and prints the command that repeats it; a crash and a kernel that does not end do likewise.
void for_each_problem(const Device& device, double seconds,
                      const std::function<void(const KernelProblem& problem)>& check);

// What is about to run: said when the program crashes in it or does not get out of it.
void announce(const std::string& what);

}  // namespace tessera::testing
