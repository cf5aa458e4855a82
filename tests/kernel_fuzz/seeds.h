// Which seeds are tried, and what is said when one of them fails.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernel_fuzz/problem.h"

namespace tessera::testing {

// Takes "--seeds FIRST-LAST" off the command line, or the environment's TESSERA_KERNEL_SEEDS: those seeds are
// tried however long it takes. Returns false, and says why, for anything else that is not GoogleTest's.
bool read_seeds(int argc, char** argv);

// Tries one seed after another: those that were asked for, or as many from 1 on as fit into so many seconds.
// `work` returns how many problems the seed had. Of a seed of which the test has failed or which threw the
// command that repeats it is printed; a crash and a kernel that does not end do likewise. Such a seed is the
// last, unless `may_go_on`, which is asked then, says that the next ones may be tried.
void for_each_seed(double seconds, const std::function<int64_t(uint64_t seed)>& work,
                   const std::function<bool()>& may_go_on = nullptr);

// The last seed that will be tried, where seeds were asked for.
std::optional<uint64_t> last_seed();

// Gives each problem of the seeds to `check`.
void for_each_problem(const Device& device, double seconds,
                      const std::function<void(const KernelProblem& problem)>& check);

// What is about to run: said when the program crashes in it or does not get out of it.
void announce(const std::string& what);

}  // namespace tessera::testing
