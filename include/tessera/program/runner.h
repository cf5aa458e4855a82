// Runs modules: as many static graphs as the values allow, and what no graph can do on the host.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/program/graph_owner.h"
#include "tessera/program/module.h"

namespace tessera::program {

struct RunnerOptions {
  // An island goes to the first that has a kernel for all of its nodes; none given: the CPU.
  std::vector<std::shared_ptr<Device>> devices = {};
  size_t most_variants = 16;  // of the plans that begin at one place: other types, other known values
  int64_t most_iterations = 1'000'000;  // of a loop
  CompileOptions compile = {};
};

// One island: instructions that became one graph, or one that ran on the host.
struct IslandReport {
  std::string block;
  size_t first = 0;  // instructions of the block, [first, end)
  size_t end = 0;
  size_t nodes = 0;    // of the graph after the passes; 0 when it did nothing but fold
  std::string device;  // "host" for a rule that runs there
  std::vector<std::string> host_operators = {};  // of nodes that the device has no kernel of its own for
  std::string why;                               // it ended
  int64_t runs = 0;
  // Before the passes, until the runner runs again; null where there is none to run.
  const Graph* graph = nullptr;
};

// A module as one graph, with the contents of the constants that it reads.
struct Instance {
  std::unique_ptr<Graph> graph;  // inputs and outputs named as in the module, as far as such names are legal
  std::map<std::string, Tensor> weights;  // of its parameters
};

// Cuts a module into islands: an instruction whose rule asks for contents that the island itself makes ends
// it. What is made of constants and shapes alone is folded. Plans are kept by the types of what they read and
// by the contents that rules asked for; of those that begin at one place the least recently used goes. What
// an island makes stays in the memory of its device for those that read it there, also from one iteration of
// a loop to the next; what the host reads and what the module gives is copied to it. One thread at a time
// uses a runner.
class Runner {
 public:
  // Throws Error(unsupported) listing every operator that no rule knows.
  explicit Runner(std::shared_ptr<const Module> module, RunnerOptions options = {});
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  const Module& module() const;
  // By name; inputs that have a default may be left out. Throws Error(invalid_argument) on a missing or an
  // unknown input and on a type that the module does not declare.
  std::map<std::string, Item> run(const std::map<std::string, Item>& inputs);

  // The whole module at these input types as one graph, whose parameters are its constants. `known`: the
  // contents of inputs that decide shapes. Throws Error(unsupported) naming the instruction that needs
  // contents that are not known.
  Instance instantiate(const std::map<std::string, TensorType>& inputs,
                       const std::map<std::string, Tensor>& known = {}) const;

  // The whole module at the end of the owner's graph, reading these values of it; gives the outputs by name.
  // Constants are folded as in instantiate(), but for those that become variables. For inference, a symbol
  // may stand in the shapes of the inputs, one in all: what depends on it is found by building for two
  // numbers. Throws Error(unsupported) naming what needs contents, or what depends on the symbol otherwise
  // than in its shape.
  std::map<std::string, Value*> build(const std::map<std::string, Value*>& inputs, GraphOwner& owner) const;

  // All islands planned so far, in the order in which they were; of a body after what is before it.
  std::vector<IslandReport> islands() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tessera::program
