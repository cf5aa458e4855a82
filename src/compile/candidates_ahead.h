// The candidates of all nodes, planned before they are asked for, and the kernels of those that will be
// timed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/background_work.h"
#include "tessera/compile/threaded_kernels.h"

#include "compile/first_runs.h"
#include "compile/planned_node.h"
#include "compile/tuner.h"

namespace tessera {

// A node that needs a kernel.
struct KernelQuestion {
  KernelRequest request;
  Tuner* tuner = nullptr;               // null: the first candidate that does not refuse is taken
  const std::string* kernel = nullptr;  // the only one to ask; null: all
  bool expands = true;  // the graph of the candidate taken is wanted, where it has one, and not its kernel
};

// The threads of a device with ThreadedKernels plan all questions, where there is a tuner equal work last,
// and then make every kernel that it will time: no two nodes of the same work, and none of a node whose
// result is remembered. Where a kernel's first run loads much, that is done, too. Where there is a tuner they
// also make the kernels of nodes that leave it no choice. On other devices nothing is done before it is asked
// for.
class CandidatesAhead {
 public:
  // Begins. The device and the questions outlive this.
  CandidatesAhead(Device& device, const std::vector<KernelQuestion>& questions);
  // Drops what has not begun, and waits for what runs.
  ~CandidatesAhead();
  CandidatesAhead(const CandidatesAhead&) = delete;
  CandidatesAhead& operator=(const CandidatesAhead&) = delete;

  // To be called once for each question. Throws as plan_candidates(); what making a kernel has thrown its
  // maker throws.
  PlannedNode take(size_t question);
  // Waits until all kernels that are made ahead are: what makes others would disturb the first. Makers
  // and the tuner may be used from then on.
  void wait_for_kernels();

 private:
  PlannedNode plan(const KernelQuestion& question, bool is_repeated);
  bool will_be_taken(const KernelQuestion& question, const PlannedNode& planned) const;
  void make(WillingCandidate& candidate, std::function<void(Kernel&)> when_made);

  Device& device_;
  const std::vector<KernelQuestion>& questions_;
  ThreadedKernels* const threaded_;  // null where the device has it not
  std::function<void()> adopt_settings_;
  bool tunes_ = false;  // any of the questions
  std::atomic<bool> stopped_ = false;
  std::vector<std::future<PlannedNode>> planned_;
  std::optional<FirstRuns> first_runs_;
  std::optional<BackgroundWork> work_;
};

}  // namespace tessera
