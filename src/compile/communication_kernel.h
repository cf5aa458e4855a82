// How collectives run: by the device itself, or through the host by their communicator.
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "tessera/compile/device.h"
#include "tessera/compile/executable.h"

namespace tessera {

// What CompileOptions::communicators has for the group of a collective; null where it has none.
std::shared_ptr<Communicator> group_of(const Node& node, const CompileOptions& options);

// Connects, by name, the groups of the graph's collectives on a device that exchanges tensors itself.
void connect_groups(const Graph& graph, Device& device, const CompileOptions& options);

// PassTarget of the device; what ranks add up together travels at once where not the device exchanges it.
PassTarget pass_target(const Graph& graph, const Device& device, const CompileOptions& options);

// Which nodes the device exchanges beside other work, for schedule(); unset: none. Device and options outlive
// it.
std::function<bool(const Node& node)> lane_of(const Device& device, const CompileOptions& options);

// Of those nodes, each group once.
std::vector<std::shared_ptr<Communicator>> groups_of(const std::unordered_set<const Node*>& nodes,
                                                     const CompileOptions& options);

// The kernels of every collective on every device: its own, where it has some, and the communicator's. The
// latter has copies to the host and back where the device's memory is not the host's; it is refused where the
// compilation has no communicator for the group, unless the device only plans. Of one rank it is a copy on
// the device. The device outlives them.
std::vector<KernelCandidate> communication_candidates(const Device& device);

}  // namespace tessera
