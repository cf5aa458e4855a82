// What a device has that exchanges tensors with the devices of other ranks by itself, without the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/compile/communicator.h"
#include "tessera/compile/kernel.h"

namespace tessera {

// An extension of a device. What it enqueues goes on beside other work, on the lane of the queue that runs it
// where that has one, and may be recorded.
//
// A communicator stays how the ranks meet, and says when one has failed: the device then ends what it is in
// the middle of, with undefined results, so that nobody waits for ever; Communicator::check() throws.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;

  // Connects the devices of the group's ranks, all of which call it before they compile what exchanges
  // tensors; what is connected already is left as it is. `most_blocks` is
  // CompileOptions::most_collective_blocks. A group that cannot be connected is none of the device's:
  // refusal() says why, the same on all ranks. Throws Error(rank_failure).
  virtual void connect(const std::shared_ptr<Communicator>& group, int64_t most_blocks) = 0;

  // Why the host exchanges the tensors of such a node of several ranks; "" where the device does. Without a
  // group it is of a device that only plans.
  virtual std::string refusal(const Node& node, const Communicator* group) const = 0;

  // Of nodes that are not refused. The device outlives it.
  virtual KernelCandidate collective_candidate() const = 0;

  // By which it exchanges them, such as "NCCL 2.28.9". Throws Error(unsupported) where that is not there.
  virtual std::string collective_library() const = 0;
};

}  // namespace tessera
