#include "device/cuda/cluster/cluster_source.h"

#include <algorithm>
#include <bit>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/graph/operator.h"

#include "device/cuda/cluster/cluster_printer.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 256;

std::string prefix(const ClusterPrinter& printer) {
  return fmt::format(
      "#include \"reduce.cuh\"\n#include \"random.cuh\"\nusing namespace tessera;\n"
      "using Index = {};\nconstexpr int V = {};\n",
      printer.index_type(), printer.vector());
}

GeneratedProgram elementwise(const ClusterPrinter& printer, const GpuTraits& gpu) {
  GeneratedProgram program;
  Launch launch{.entry = "run", .threads = kThreads, .arguments = {}};
  const int64_t steps = printer.space().elements() / printer.vector();
  launch.blocks = blocks_for(steps, kThreads, gpu);
  const std::string parameters = printer.parameters(launch.arguments);
  program.source =
      prefix(printer) +
      entry_text("run", kThreads, parameters,
                 fmt::format("  for (Index i = blockIdx.x * blockDim.x + threadIdx.x; i < {}; "
                             "i += gridDim.x * blockDim.x) {{\n    const Index e = i * V;\n{}{}  }}\n",
                             steps, printer.coordinates_of_element(), printer.step(false)));
  program.launches = {std::move(launch)};
  return program;
}

// How a reduction is cut into blocks and threads. A unit is what a thread adds at once: `vector` elements
// where the innermost axis is reduced ("rows"), else one element of each of `vector` results. The cut depends
// on shapes and the GPU's model alone.
struct ReductionPlan {
  bool rows = false;
  int64_t results = 1;
  int64_t count = 1;   // elements of one result
  int64_t groups = 1;  // of results that one thread works on
  int64_t units = 1;
  int x = 1;  // groups of a block
  int y = 1;  // threads that share a group
  int64_t blocks = 1;
  int64_t chunks = 1;

  ReductionPlan(const ClusterPrinter& printer, const GpuTraits& gpu) {
    const backend::IterationSpace& space = printer.space();
    rows = space.reduced.back();
    for (size_t axis = 0; axis < space.extents.size(); ++axis) {
      (space.reduced[axis] ? count : results) *= space.extents[axis];
    }
    groups = rows ? results : results / printer.vector();
    units = rows ? count / printer.vector() : count;
    const auto power = [](int64_t value, int64_t most) {
      return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(value, 1, most))));
    };
    if (rows) {
      y = power(units, kThreads);
      x = kThreads / y;
    } else {
      x = power(groups, 32);
      y = kThreads / x;
    }
    blocks = (groups + x - 1) / x;
    if (blocks == 0) return;
    constexpr int64_t kUnitsOfAThread = 4;  // at least, lest the parts cost more than they bring
    const int64_t wanted = gpu.multiprocessors * int64_t{4} / blocks;
    chunks = std::clamp<int64_t>(std::min(wanted, units / (y * kUnitsOfAThread)), 1, 1024);
  }
};

// Coordinates from the number of a result and the number of an element within it.
std::string split_coordinates(const backend::IterationSpace& space) {
  std::string text = "    Index kept = r, gone = k;\n";
  for (size_t axis = space.extents.size(); axis-- > 0;) {
    text += fmt::format("    const Index c{0} = {1} % {2}; {1} /= {2};\n", axis,
                        space.reduced[axis] ? "gone" : "kept", std::max<int64_t>(space.extents[axis], 1));
  }
  const std::vector<int64_t> strides = row_major_strides(space.extents);
  std::vector<std::string> terms;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    terms.push_back(fmt::format("c{} * static_cast<Index>({})", axis, strides[axis]));
  }
  return text + fmt::format("    const Index e = {};\n", fmt::join(terms, " + "));
}

class ReductionSource {
 public:
  ReductionSource(const ClusterPrinter& printer, const GpuTraits& gpu)
      : printer_(printer), plan_(printer, gpu) {}

  GeneratedProgram print() {
    Launch launch{
        .entry = "run", .blocks = plan_.blocks, .chunks = plan_.chunks, .threads = kThreads, .arguments = {}};
    std::string parameters = printer_.parameters(launch.arguments);
    if (plan_.chunks > 1) add_parts(launch, parameters);
    program_.source = prefix(printer_) + entry(parameters) + program_.source;
    program_.launches.insert(program_.launches.begin(), std::move(launch));
    return std::move(program_);
  }

 private:
  std::string stored_type(size_t k) const {
    return device_type(printer_.reductions()[k].node->output()->data_type());
  }
  double divisor(size_t k) const {
    const bool mean = printer_.reductions()[k].node->schema().traits.reduction == ReductionKind::mean;
    return mean ? static_cast<double>(plan_.count) : 1;
  }

  // Each chunk leaves its part of every result in the workspace; a second launch adds them up, with one row
  // of blocks for each reduction.
  void add_parts(Launch& launch, std::string& parameters) {
    std::vector<std::string> pointers;
    std::string cases;
    Launch combine{.entry = "combine",
                   .blocks = quotient_rounded_up(plan_.results, int64_t{kCombineResults}),
                   .chunks = static_cast<int64_t>(printer_.reductions().size()),
                   .threads = kCombineThreads,
                   .arguments = {}};
    for (size_t k = 0; k < printer_.reductions().size(); ++k) {
      const ClusterReduction& reduction = printer_.reductions()[k];
      parameters += fmt::format(", Accumulator<{}>* s{}", stored_type(k), k);
      const Argument parts{Argument::Kind::workspace, program_.workspace_bytes};
      launch.arguments.push_back(parts);
      constexpr int64_t kAccumulatorBytes = 8;
      program_.workspace_bytes += (plan_.chunks * plan_.results * kAccumulatorBytes + 63) / 64 * 64;
      pointers.push_back(fmt::format("const Accumulator<{0}>* s{1}, {0}* y{1}", stored_type(k), k));
      combine.arguments.push_back(parts);
      combine.arguments.push_back({Argument::Kind::output, static_cast<int64_t>(reduction.output)});
      cases += fmt::format("  if (blockIdx.y == {0}) combine_chunks<{1}>(s{0}, {2}, {3}, {4:.1f}, y{0});\n",
                           k, reduction.operation, plan_.results, plan_.chunks, divisor(k));
    }
    program_.source =
        entry_text("combine", kCombineThreads, fmt::format("{}", fmt::join(pointers, ", ")), cases);
    program_.launches.push_back(std::move(combine));
  }

  // All blocks walk through memory together from its end to its start: what ran before has just written the
  // end, and what runs next begins at the start, so that both find a part of it in the second-level cache.
  std::string entry(const std::string& parameters) const {
    const int values = plan_.rows ? 1 : printer_.vector();
    const int64_t stride = plan_.chunks * plan_.y;
    std::string text = fmt::format(
        "  constexpr int X = {0}, Y = {1}, N = {2};\n"
        "  const int x = {3}, y = {4};\n"
        "  const Index group = blockIdx.x * static_cast<Index>(X) + x;\n"
        "  const Index r = group * static_cast<Index>(N);\n"
        "  constexpr Index kStride = {5};\n"
        "  Index unit = static_cast<Index>({6}) + blockIdx.y * static_cast<Index>(Y) + y;\n"
        "  if (unit >= {7}) unit -= kStride;\n",
        plan_.x, plan_.y, values, plan_.rows ? "threadIdx.x / Y" : "threadIdx.x % X",
        plan_.rows ? "threadIdx.x % Y" : "threadIdx.x / X", stride, (plan_.units - 1) / stride * stride,
        plan_.units);
    for (size_t k = 0; k < printer_.reductions().size(); ++k) {
      text += fmt::format(
          "  Accumulator<{1}> r{0}[N];\n"
          "  for (int v = 0; v < N; ++v) r{0}[v] = {2}::start<Accumulator<{1}>>();\n",
          k, stored_type(k), printer_.reductions()[k].operation);
    }
    text += fmt::format(
        "  if (group < {}) {{\n#pragma unroll 4\n  for (; unit >= 0; unit -= kStride) {{\n"
        "    const Index k = unit{};\n{}{}  }}\n  }}\n",
        plan_.groups, plan_.rows ? " * V" : "", split_coordinates(printer_.space()),
        printer_.step(plan_.rows));
    for (size_t k = 0; k < printer_.reductions().size(); ++k) text += ending(k);
    return entry_text("run", kThreads, parameters, text);
  }

  std::string ending(size_t k) const {
    const ClusterReduction& reduction = printer_.reductions()[k];
    const std::string target =
        plan_.chunks > 1
            ? fmt::format("s{}[blockIdx.y * static_cast<Index>({}) + r + v] = total", k, plan_.results)
            : fmt::format("y{}[r + v] = finish<{}>(total, {:.1f})", reduction.output, stored_type(k),
                          divisor(k));
    return fmt::format(
        "  {{\n  __shared__ Accumulator<{1}> scratch[X * Y];\n  for (int v = 0; v < N; ++v) {{\n"
        "    const auto total = combine_block<{2}, X, Y>(r{0}[v], x, y, scratch);\n"
        "    if (y == 0 && group < {3}) {4};\n  }}\n  }}\n",
        k, stored_type(k), reduction.operation, plan_.groups, target);
  }

  const ClusterPrinter& printer_;
  ReductionPlan plan_;
  GeneratedProgram program_;
};

}  // namespace

GeneratedProgram print_cluster(const Graph& body, const GpuTraits& gpu) {
  const auto printer = std::make_shared<ClusterPrinter>(body);
  GeneratedProgram program =
      printer->reductions().empty() ? elementwise(*printer, gpu) : ReductionSource(*printer, gpu).print();
  std::vector<std::vector<bool>> allowed;
  for (size_t output = 0; output < body.outputs().size(); ++output) {
    allowed.emplace_back();
    for (size_t input = 0; input < body.inputs().size(); ++input) {
      allowed.back().push_back(printer->may_overwrite(output, input));
    }
  }
  program.may_overwrite = [allowed](size_t output, size_t input) { return allowed.at(output).at(input); };
  return program;
}

bool clusters_take(const Node& node) {
  const auto& inputs = node.inputs();
  const auto& outputs = node.outputs();
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Value* value) { return has_device_type(value->data_type()); }) &&
         std::all_of(outputs.begin(), outputs.end(),
                     [](const auto& value) { return has_device_type(value->data_type()); });
}

}  // namespace tessera::cuda
