// Kernels that are entries of a generated module, launched one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cuda/codegen/module_cache.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// One pointer that an entry takes.
struct Argument {
  enum class Kind { input, output, workspace, counters };
  Kind kind = Kind::input;
  int64_t index = 0;  // of the input or output; the offset in the workspace; the first counter
};

// Pointers that an entry takes, by the names of the fields that they have in its text: what is not there is a
// null field, and what stands in several fields is one parameter.
class PointerList {
 public:
  explicit PointerList(const Node& node) : node_(node) {}

  void input(std::string_view field, std::optional<size_t> index);
  void output(std::string_view field, std::optional<size_t> index);
  // As an array: field[0], field[1], ...
  void inputs(std::string_view field, const std::vector<size_t>& indices);
  // Numbers of that type from that byte of the workspace on.
  void workspace(std::string_view field, int64_t offset, std::string_view type = "float");
  // As a parameter only; its name.
  std::string output(size_t index);
  std::string workspace(int64_t offset, std::string_view type = "float");

  std::string parameters() const;  // "const half* x0, float* y1, float* parts0"
  // "Structure name{};" and an assignment to each field that is there.
  std::string filled(std::string_view structure, std::string_view name) const;
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  std::string add(std::string_view type, std::string name, Argument argument);
  std::string input(size_t index);

  const Node& node_;
  std::vector<std::string> parameters_;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::vector<Argument> arguments_;
  int64_t parts_ = 0;
};

// How an entry begins. All but `ahead` wait for what the launch before has written.
enum class Beginning {
  wait,
  // The launch after it may come at once, and the entry waits by itself (wait_for_launch() of
  // kernels/launch.cuh) before it reads what a kernel may have written or writes anything. For launches that
  // leave room.
  ahead,
};

// The text of an entry of a module, from its head to its closing brace. A multiprocessor holds `blocks` of it
// or more; 0: as many as it may.
std::string entry_text(std::string_view name, int threads, std::string_view parameters, std::string_view body,
                       int blocks = 0, Beginning beginning = Beginning::wait);

// Of an entry that calls `function` for the module's Problem with a `structure` of the pointers.
std::string calling_entry(std::string_view name, int threads, const PointerList& pointers,
                          std::string_view structure, std::string_view function, int blocks,
                          Beginning beginning = Beginning::wait);

// A matrix of 16-bit numbers, row by row, as the unit of compute capability 9.0 that copies tiles knows it.
struct TensorMapArgument {
  Argument matrix;
  DataType type = DataType::bf16;
  int64_t rows = 1, columns = 1;
  int64_t tile_rows = 1, tile_columns = 1;  // of a copy; a row of it takes 128 bytes, which are swizzled
};

struct Launch {
  std::string entry;
  int64_t blocks = 0;  // none: nothing is launched
  int64_t chunks = 1;  // the grid's second extent
  int threads = 256;
  std::vector<Argument> arguments;
  int64_t shared_bytes = 0;  // of a block, beside what the source declares
  int cluster = 1;           // so many blocks, side by side, reach each other's shared memory
  bool resident = false;     // all blocks run at the same time, so that they may wait for each other
  int64_t array = 0;         // so many arguments, the first ones, are one array by value
  std::vector<TensorMapArgument> maps = {};  // before the arguments
  bool copies = false;  // the first argument to the second: left out where both are one place
};

// Text and launches for one problem.
struct GeneratedProgram {
  std::string source;
  std::vector<Launch> launches;
  int64_t workspace_bytes = 0;
  int64_t counters = 0;  // of 64 bits, zero before the first run, kept from run to run
  // Whether an output may lie over an input; empty: never.
  std::function<bool(size_t output, size_t input)> may_overwrite = nullptr;
};

std::unique_ptr<Kernel> make_generated_kernel(Context& context, GeneratedProgram program);

// "generated.NAME". `make` may refuse (device/common/refusal.h).
KernelCandidate generated_candidate(
    const std::string& name, Context& context,
    const std::function<GeneratedProgram(const KernelRequest& request, const GpuTraits& gpu)>& make);

// Offers "generated.NAME" for an operator, or for a fused node whose key is "fused:NAME". `make` may refuse.
struct GeneratedRegistration {
  GeneratedRegistration(
      const std::string& key,
      std::function<GeneratedProgram(const KernelRequest& request, const GpuTraits& gpu)> make);
  GeneratedRegistration(const std::string& key,
                        std::function<GeneratedProgram(const Node& node, const GpuTraits& gpu)> make);
};

// Refuses types that the templates on the Tensor Cores do not take: they take those of
// 16 bits, and fp32 where its products may be in TF32.
void refuse_unless_multiplied(DataType type, bool tf32);

// Whether kernels have a name for the type: not for elements narrower than a byte and complex ones.
bool has_device_type(DataType type);
// The type's name in kernels/types.cuh. Refuses types that have none.
std::string device_type(DataType type);
// The number as float32.
std::string float_literal(double value);

// Blocks for a loop over `count` elements that strides by the grid: enough to fill the GPU.
int64_t blocks_for(int64_t count, int threads, const GpuTraits& gpu);

// A program of one entry `run` whose parameters are all inputs and then all outputs of the node, by type, as
// x0, x1, ... and y0, y1, ...; `statement` is its body.
GeneratedProgram simple_program(const Node& node, const std::string& header, const std::string& statement,
                                int64_t blocks, int threads);

}  // namespace tessera::cuda
