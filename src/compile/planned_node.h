// What the candidates of a node say of it.
#pragma once

#include <string>
#include <vector>

#include "tessera/compile/device.h"
#include "tessera/compile/executable.h"

namespace tessera {

// A candidate that does not refuse, and what makes its kernel.
struct WillingCandidate {
  const KernelCandidate* candidate = nullptr;
  KernelMaker make;
  const std::string& name() const { return candidate->name; }
};

// The request outlives it.
struct PlannedNode {
  std::vector<KernelCandidate> candidates;  // all, also those that were not asked
  std::vector<CandidateReport> reports;     // of those that were
  // From the one to take unmeasured on; empty where all refuse. A fallback only where there is nothing else.
  std::vector<WillingCandidate> willing;
};

// Asks the candidates; `tuned`: also those for the tuner alone. With `kernel` only the one of that name is
// asked. Throws what a candidate throws, with its name and the node's: that is no refusal.
PlannedNode plan_candidates(const KernelRequest& request, const Device& device, bool tuned,
                            const std::string* kernel = nullptr);

}  // namespace tessera
