// A kernel runs one node on one device; candidates say which kernels could, and why others could not.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/graph.h"

namespace tessera {

class Communicator;
class Queue;

// Pointers in device memory, aligned to Device::memory_alignment(). An output may equal an input only where
// may_overwrite allowed it.
struct KernelArguments {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace;  // workspace_bytes() of scratch memory, undefined contents
  Queue& queue;     // on which the work is enqueued; done when run() returns, where the device is the host
  std::span<const void* const> packed = {};  // what Kernel::packings() lists
};

// What a kernel makes of an input that never changes (a frozen weight), to read it faster: reordered,
// transformed.
struct Packing {
  size_t input = 0;
  // All that the contents depend on beside those of the input: equal texts give equal bytes. "" where it
  // cannot be said: the packing is this kernel's alone.
  std::string layout;
  int64_t bytes = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Scratch memory booked before the first run; the planner grants it.
  virtual int64_t workspace_bytes() const { return 0; }
  // True when the kernel stays correct with `output` written over `input`, which nothing else reads later.
  virtual bool may_overwrite(size_t output, size_t input) const { return false; }
  // Of frozen inputs alone. They are made when these are bound, and kept beside the variables, once for all
  // kernels that want the same; `run` receives the inputs' own pointers, too.
  virtual std::vector<Packing> packings() const { return {}; }
  // Makes packings()[index] of its input's memory; done when it returns.
  virtual void pack(size_t index, const void* memory, void* packed) const {}
  // False where each run needs the host, which waits for the queue, perhaps: no recording can hold it.
  virtual bool recordable() const { return true; }
  // True where the first run loads much, such as code of a library. Of what is measured that is done before.
  virtual bool loads_at_first_run() const { return false; }
  virtual void run(const KernelArguments& arguments) = 0;
};

// What a kernel is asked for. The node is static and outlives the kernel.
struct KernelRequest {
  const Node& node;
  std::vector<bool> frozen_inputs;  // per input: it never changes, and the kernel may have it packed
  bool deterministic = true;        // the same bits at every run
  bool tf32 = false;                // fp32 products may round their operands to TF32
  // Of the node's group, where it communicates and the compilation has one.
  std::shared_ptr<Communicator> communicator = {};
};

// Why a candidate does not run a node.
struct Refusal {
  std::string reason;
};

// Makes the kernel that a candidate has planned: a new one at each call, for the request that was planned
// for.
using KernelMaker = std::function<std::unique_ptr<Kernel>()>;

struct KernelCandidate {
  std::string name;  // such as "onednn.convolution" or "loops.cluster"
  // Its rounding errors as a multiple of those of the plain sums: more than 1 where it computes otherwise.
  double rounding_amplification = 1;
  // What lies between the nodes of a fused one may be rounded to its type, as by a kernel for each of them.
  bool rounds_between = false;
  // Taken only where no other candidate is willing, the first of several, and never timed.
  bool fallback = false;
  // Asked and taken by the tuner alone, after all others: what a refusal costs only a measurement pays back.
  bool only_tuned = false;
  // The graph that the kernel runs in place of the node, where that is all it does; its inputs and outputs
  // are the node's, in order. Where such a candidate wins, the graph takes the node's place, so that one
  // schedule and one plan of memory see all of it. Its kernel is what is timed and compared. Empty: none.
  std::function<std::shared_ptr<const Graph>(const KernelRequest& request)> graph = {};
  // Finds out, once, what there is to know of the node; the request outlives what is returned. What it throws
  // is no refusal: the device failed, or memory is lacking, and another candidate must not hide that.
  std::function<std::variant<Refusal, KernelMaker>(const KernelRequest& request)> plan;

  // Why it does not run the node; "" when it does.
  std::string refusal(const KernelRequest& request) const;
  // Plans and makes the kernel. Throws Error(unsupported) with the refusal.
  std::unique_ptr<Kernel> create(const KernelRequest& request) const;
};

}  // namespace tessera
