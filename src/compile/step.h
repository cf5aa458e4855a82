// A node with the kernel that runs it.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/executable.h"

#include "compile/schedule.h"

namespace tessera {

struct Step {
  const Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;  // null for an alias, and on a device that makes none
  std::string kernel_name;
  std::vector<const void*> inputs;
  std::vector<const void*> packed;  // by Kernel::packings()
  std::vector<void*> outputs;
  void* workspace = nullptr;

  // What a kernel throws says of which node it is; so does what it comes to later on the device, where the
  // host `waits` for it.
  void run(Queue& queue, bool waits);
};

// Whether TESSERA_SYNCHRONIZE is 1: the host waits for each node, and nothing is recorded.
bool waits_for_each_node();

std::vector<Kernel*> kernel_pointers(const std::vector<Step>& steps);

KernelRequest request_for(const Node& node, const Schedule& schedule, const CompileOptions& options);

}  // namespace tessera
