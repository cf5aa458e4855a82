// A node with the kernel that runs it.
#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "tessera/compile/executable.h"

#include "compile/schedule.h"
#include "compile/views.h"

namespace tessera {

struct Step {
  const Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;  // null for an alias, and on a device that makes none
  std::string kernel_name;
  std::vector<const void*> inputs;
  std::vector<const void*> packed;  // by Kernel::packings()
  std::vector<void*> outputs;
  void* workspace = nullptr;

  // What a kernel throws says of which node it is.
  void run(Queue& queue);
};

std::vector<Kernel*> kernel_pointers(const std::vector<Step>& steps);

KernelRequest request_for(const Node& node, const Schedule& schedule, const CompileOptions& options);

// The steps that run once, those of every run, and reports of both in that order. Throws Error(unsupported)
// when no kernel takes a node.
std::tuple<std::vector<Step>, std::vector<Step>, std::vector<NodeReport>> choose_steps(
    const Schedule& schedule, const Views& views, Device& device, const CompileOptions& options);

}  // namespace tessera
