// From a graph to something that runs: passes, kernel choice, schedule, memory plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/clock.h"
#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"
#include "tessera/compile/device_tensor.h"
#include "tessera/compile/memory_plan.h"
#include "tessera/compile/prepared_graph.h"
#include "tessera/compile/variables.h"
#include "tessera/compile/workspace.h"
#include "tessera/passes/pass.h"

namespace tessera {

struct CompileOptions {
  PassOptions passes;
  PipelineOptions pipeline;
  bool tune = false;        // time the candidates of nodes that are worth it
  std::string tuning_file;  // where winners are remembered; "" keeps them in memory only
  // Of a graph that was compiled before, as PreparedGraph has them: no pass runs, nothing is tuned, and each
  // node's kernel is the one named. Throws Error(unsupported) where the device has it not, or it refuses.
  std::optional<KernelNames> kernels = {};
  // Shared with executables that never run at the same time; none: one of its own.
  std::shared_ptr<Workspace> workspace = {};
  // Of the groups that collectives name; "" is that of all ranks. All ranks run the same graph.
  std::map<std::string, std::shared_ptr<Communicator>> communicators = {};
  // How many thread blocks a GPU's collectives have at most, beside which the rest computes; 0: as its
  // library likes it. The first executable that uses a communicator says it for all.
  int64_t most_collective_blocks = 0;
  bool plan_memory = true;  // false: every value in memory of its own
  bool poison_freed =
      false;  // fill memory with 0xFF (NaN) when the plan frees it: shows reads after the end of life
  bool check_finite =
      false;  // after each node look for NaN and infinity; throws Error(not_finite) naming the node
};

// One line of `tessera explain`.
struct CandidateReport {
  std::string name;
  std::string refused;       // why not; "" when it could run
  double microseconds = -1;  // -1 when it was not timed
};
struct NodeReport {
  std::string name;
  std::string operator_name;  // "fused:convolution" for fused nodes
  // "alias" where there is none to run: the results are the operand's memory, or the operands are made in
  // their places of the result.
  std::string kernel;
  std::string memory = {};  // of an alias: "part of 'x' at byte 4096", "holds its operands"
  std::vector<CandidateReport> candidates;
  double flops = 0;
  double bytes = 0;
  // In which most of its flops are done; none for types without a precision of their own, such as fp64.
  std::optional<Precision> arithmetic = {};
  bool once = false;  // runs when variables are bound, not in every run
  // Of a collective that goes on beside other work: "until 'x'", the node that waits for it. "" of all
  // others.
  std::string lane = {};
  TimeSpan choice = {};  // when its kernel was chosen and made
};

// A part of compilation.
struct PhaseReport {
  std::string name;
  TimeSpan time;
};

// What one run did when.
struct RunTimes {
  TimeSpan reading;                     // its inputs were waited for
  TimeSpan inputs;                      // checked, and copied where the device needs it
  TimeSpan work;                        // given to the device; done, where the device is the host
  TimeSpan outputs;                     // waited for and read, after the start of the next run
  bool recorded = false;                // the work was one launch of a recording
  std::optional<TimeSpan> device = {};  // the work by the device's own timer, where it has one
};

// When each node ran, in the order of Executable::nodes(); an empty span for those that run once. Those of a
// lane overlap others where the device measures, and who waits for them begins when they are done.
struct NodeTimes {
  std::vector<TimeSpan> nodes;
  // True: the device measured all in one launch of a recording, without gaps but for waiting. False: the host
  // did, and waited for each node.
  bool recorded = false;
};

// One thread at a time uses an executable. Different ones may be used by different threads, also on one
// device: each runs on its own queue. What they share is said at Variables.
class Executable {
 public:
  virtual ~Executable() = default;

  // The graph after the passes; node names are those of the reports.
  virtual const Graph& graph() const = 0;
  virtual const MemoryPlan& memory_plan() const = 0;
  // In which it runs; Workspace::uses() says with whom.
  virtual const std::shared_ptr<Workspace>& workspace() const = 0;
  virtual const std::vector<NodeReport>& nodes() const = 0;
  // Nodes whose best kernel was a graph of its own, by the name of `kernel`: its nodes are among nodes() in
  // their place, and have their names with that of the node before it.
  virtual const std::vector<NodeReport>& replaced() const = 0;
  virtual const std::vector<PassReport>& passes() const = 0;
  // One after the other, without gaps.
  virtual const std::vector<PhaseReport>& phases() const = 0;
  double compile_seconds() const {
    return TimeSpan{phases().front().time.begin, phases().back().time.end}.seconds();
  }

  // Connects parameters, states and constants. Each must be there with the graph's type; throws
  // Error(invalid_argument) naming the first that is not. A state with an initial value is created where it
  // is missing. Memory is allocated at the first time: throws Error(out_of_memory) with what is free and the
  // largest tensors. Work on constants and frozen parameters happens here, once.
  virtual void bind(std::shared_ptr<Variables> variables) = 0;

  // As bind(), with variables that are this executable's alone: asks for each when it is first read, once.
  // Those that only work on constants and frozen parameters reads leave the device after it, so that weights
  // in another precision never lie beside all that they are made of. Throws as bind(), and what `value`
  // throws; nothing is bound then.
  virtual void load(const VariableSource& value) = 0;

  // Gives inputs to the device ahead of the runs, which may leave them out until they are given anew.
  // Throws as run().
  virtual void stage(const std::map<std::string, Tensor>& inputs) = 0;

  // As stage(), with inputs that lie on the device: runs read them where they lie, once their contents are
  // there, until the input is given anew. What changes them meanwhile must wait for the runs on queue().
  // Where runs are recorded, other memory is another recording. Throws as run(), and Error(invalid_argument)
  // for another device's.
  virtual void stage(const DeviceFeeds& inputs) = 0;

  // Where an output of the runs to come goes: by default to the host, with receive(). Throws
  // Error(invalid_argument) on a name that is no output's, and while a run is under way.
  enum class Fetch : uint8_t { host, device };
  virtual void fetch(const std::string& output, Fetch where) = 0;
  // The output of the run that was given last, on the device: there once queue() has done what it was given
  // so far, which DeviceTensor::ready() says; valid until another executable of its workspace is bound or
  // runs, or this one runs again.
  virtual DeviceTensor output(const std::string& name) = 0;

  // What makes this executable again without passes, choice of kernels and work on constants. Throws
  // Error(unsupported) where runs change variables or ranks communicate, and Error(invalid_argument) before
  // bind() or load() where the device executes.
  virtual PreparedGraph prepared() const = 0;

  // On which its runs take place.
  virtual Queue& queue() = 0;

  // Runs once: inputs by name, outputs by name; updates change the variables in place. Throws
  // Error(invalid_argument) on a missing input or a wrong type.
  virtual std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs) = 0;

  // run() in two halves, so that the host prepares the next run while a device works. submit() returns as
  // soon as the run is enqueued; where the device is the host, it has run. receive() waits for the oldest run
  // that was not received, and for nothing after it. At most kMostSubmitted may be under way; throws
  // Error(invalid_argument) on more, on receive() without any, and on other runs meanwhile.
  static constexpr size_t kMostSubmitted = 2;
  void submit(const std::map<std::string, Tensor>& inputs) { submit(inputs, {}); }
  // With inputs that lie on the device, `there`, each run's own: the queue copies them to where recorded runs
  // read them, once their contents are there, and they are kept until it has. Throws as stage().
  virtual void submit(const std::map<std::string, Tensor>& inputs, const DeviceFeeds& there) = 0;
  virtual std::map<std::string, Tensor> receive() = 0;
  // The outputs of submitted runs are not wanted any more; the runs take place.
  virtual void discard() = 0;

  // So many runs, each given before the one ahead of it is received, with what happened when. The outputs are
  // dropped.
  std::vector<RunTimes> trace(const std::map<std::string, Tensor>& inputs, size_t runs) {
    return trace_fed([&] { return RunFeeds{.host = inputs}; }, runs);
  }
  // The same, each with the inputs that `next` gives.
  virtual std::vector<RunTimes> trace_fed(const std::function<RunFeeds()>& next, size_t runs) = 0;

  // Runs with these inputs and measures each node; the very first run goes ahead of it unmeasured. Updates
  // are applied.
  virtual NodeTimes profile(const std::map<std::string, Tensor>& inputs) = 0;
};

// The graph must be static; it is copied. Throws Error(invalid_argument) naming free symbols,
// Error(unsupported) with every candidate's refusal when no kernel takes a node, Error(out_of_memory) with
// the largest tensors when the plan does not fit the device.
std::unique_ptr<Executable> compile(const Graph& graph, std::shared_ptr<Device> device,
                                    const CompileOptions& options = {});

}  // namespace tessera
