#include "device/cuda/cluster/grouped_clusters.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/cluster_body.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"

#include "device/cuda/cluster/cluster_printer.h"
#include "device/cuda/kernel_registry.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kStepsOfAThread = 4;  // enough to hide the memory's latency, and the sums' cost

// The number of a text among those seen so far; equal texts are printed once.
class Texts {
 public:
  size_t number_of(const std::string& text) {
    const auto [position, added] = numbers_.emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return position->second;
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
};

class GroupPrinter {
 public:
  explicit GroupPrinter(const Node& group) : group_(group) {
    allowed_.assign(group.outputs().size(), std::vector<bool>(group.inputs().size(), false));
    for (const auto& node : group.body()->nodes()) places_ = std::max(places_, add(*node));
    backend::refuse_unless(static_cast<int64_t>(arguments_.size()) <= kValuesOfAGroup,
                           "{} values are more than a launch takes", arguments_.size());
  }

  GeneratedProgram print() {
    GeneratedProgram program;
    Launch run{.entry = "run", .blocks = blocks_, .threads = kGroupThreads, .arguments = arguments_};
    run.array = static_cast<int64_t>(arguments_.size());
    program.workspace_bytes = blocks_ * places_ * int64_t{sizeof(uint64_t)};
    run.arguments.push_back({Argument::Kind::workspace, 0});
    program.launches = {run};
    if (!sums_.empty()) {
      run.entry = "combine";
      run.blocks = static_cast<int64_t>(sums_.size());
      program.launches.push_back(run);
    }
    program.source = source();
    program.may_overwrite = [allowed = allowed_](size_t output, size_t input) {
      return allowed.at(output).at(input);
    };
    return program;
  }

 private:
  // Returns how many sums a block of it leaves.
  int64_t add(const Node& node) {
    const std::unique_ptr<Graph> cluster = backend::cluster_body(node);
    const ClusterPrinter printer(*cluster);
    backend::refuse_unless(printer.is_flat(), "'{}' needs coordinates", node.name());
    std::vector<Argument> own;  // among the cluster's inputs and outputs
    printer.parameters(own);
    const auto first_pointer = static_cast<int64_t>(arguments_.size());
    for (const Argument& argument : own) {
      const auto index = static_cast<size_t>(argument.index);
      const bool reads = argument.kind == Argument::Kind::input;
      const size_t outer = reads ? backend::input_index(group_, node.input(index)) : output_of(node, index);
      arguments_.push_back({argument.kind, static_cast<int64_t>(outer)});
    }
    allow_overwriting(node, printer);
    const int64_t steps = printer.space().elements() / printer.vector();
    const int64_t blocks = quotient_rounded_up(steps, kGroupThreads * kStepsOfAThread);
    add_sums(printer, own, first_pointer, blocks);
    pieces_.push_back(fmt::format("{{{}, {}, {}, {}}}", blocks_,
                                  works_.number_of(work(*cluster, printer, own)), first_pointer, steps));
    blocks_ += blocks;
    return static_cast<int64_t>(printer.reductions().size());
  }

  size_t output_of(const Node& node, size_t index) const {
    const std::optional<size_t> output = backend::output_index(group_, node.output(index));
    backend::refuse_unless(output.has_value(), "nothing reads '{}'", node.output(index)->name());
    return *output;
  }

  // An input of another cluster may be read after this one wrote.
  void allow_overwriting(const Node& node, const ClusterPrinter& printer) {
    for (size_t output = 0; output < node.outputs().size(); ++output) {
      for (size_t input = 0; input < node.inputs().size(); ++input) {
        if (node.input(input)->uses().size() == 1 && printer.may_overwrite(output, input))
          allowed_[output_of(node, output)][node.input(input)->index()] = true;
      }
    }
  }

  void add_sums(const ClusterPrinter& printer, const std::vector<Argument>& arguments, int64_t first_pointer,
                int64_t blocks) {
    const auto first_output = std::find_if(arguments.begin(), arguments.end(), [](const Argument& argument) {
      return argument.kind == Argument::Kind::output;
    });
    const int64_t outputs = first_pointer + (first_output - arguments.begin());
    for (size_t k = 0; k < printer.reductions().size(); ++k) {
      const ClusterReduction& reduction = printer.reductions()[k];
      const DataType type = reduction.node->output()->data_type();
      const size_t number =
          combinations_.number_of(fmt::format("{}, {}", reduction.operation, device_type(type)));
      const bool mean = reduction.node->schema().traits.reduction == ReductionKind::mean;
      const double divisor = mean ? static_cast<double>(printer.space().elements()) : 1;
      sums_.push_back(fmt::format("{{{}, {}, {}, {}, {}, {:.1f}}}", blocks_, blocks, k, number,
                                  outputs + static_cast<int64_t>(reduction.output), divisor));
    }
  }

  // The function that does the steps of one block, without its head: clusters that differ in their pointers
  // and their size alone share it.
  static std::string work(const Graph& cluster, const ClusterPrinter& printer,
                          const std::vector<Argument>& arguments) {
    std::string text =
        fmt::format("  using Index = {};\n  constexpr int V = {};\n", printer.index_type(), printer.vector());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto index = static_cast<size_t>(arguments[i].index);
      const bool reads = arguments[i].kind == Argument::Kind::input;
      const Value* value = reads ? cluster.inputs()[index].get() : cluster.outputs()[index].value;
      text += fmt::format("  auto* {}{} = static_cast<{}{}*>(at[{}]);\n", reads ? 'x' : 'y', index,
                          reads ? "const " : "", device_type(value->data_type()), i);
    }
    std::string ending;
    for (size_t k = 0; k < printer.reductions().size(); ++k) {
      const ClusterReduction& reduction = printer.reductions()[k];
      const std::string accumulator =
          fmt::format("Accumulator<{}>", device_type(reduction.node->output()->data_type()));
      text += fmt::format("  {0} r{1}[1] = {{{2}::start<{0}>()}};\n", accumulator, k, reduction.operation);
      ending += fmt::format(
          "  const auto t{0} = combine_block<{1}, 1, {2}>(r{0}[0], 0, threadIdx.x, "
          "static_cast<{3}*>(scratch));\n"
          "  if (threadIdx.x == 0) sum_of_block<{3}>(sums, block, {0}, kPlaces) = t{0};\n",
          k, reduction.operation, kGroupThreads, accumulator);
    }
    return text +
           fmt::format(
               "#pragma unroll\n  for (int n = 0; n < {}; ++n) {{\n"
               "    const int64 place = first + n * {} + threadIdx.x;\n    if (place >= steps) break;\n"
               "    const Index e = static_cast<Index>(place) * V;\n{}  }}\n",
               kStepsOfAThread, kGroupThreads, printer.step(!printer.reductions().empty())) +
           ending;
  }

  std::string source() const {
    std::string text = fmt::format(
        "#include \"grouped.cuh\"\nusing namespace tessera;\nconstexpr int kPlaces = {};\n"
        "__constant__ const Piece pieces[] = {{{}}};\n",
        places_, fmt::join(pieces_, ", "));
    std::string cases;
    for (size_t i = 0; i < works_.all().size(); ++i) {
      text += fmt::format(
          "__device__ inline void work{}(void* const* at, int64 first, int64 steps, int block, uint64* sums, "
          "void* scratch) {{\n{}}}\n",
          i, works_.all()[i]);
      cases +=
          fmt::format("    case {0}: work{0}(at, first, piece.steps, block, sums, scratch); break;\n", i);
    }
    text += entry("run", fmt::format("  const int block = static_cast<int>(blockIdx.x);\n"
                                     "  const Piece& piece = piece_of(pieces, block);\n"
                                     "  void* const* at = pointers.at + piece.first_pointer;\n"
                                     "  const int64 first = int64{{block - piece.first_block}} * {};\n"
                                     "  switch (piece.work) {{\n{}  }}\n",
                                     kGroupThreads * kStepsOfAThread, cases));
    if (sums_.empty()) return text;
    cases.clear();
    for (size_t i = 0; i < combinations_.all().size(); ++i) {
      cases += fmt::format(
          "    case {}: combine_blocks<{}>(own, sums, kPlaces, scratch, pointers.at[own.pointer]); break;\n",
          i, combinations_.all()[i]);
    }
    return text +
           fmt::format("__constant__ const PieceSum piece_sums[] = {{{}}};\n", fmt::join(sums_, ", ")) +
           entry("combine",
                 fmt::format(
                     "  const PieceSum& own = piece_sums[blockIdx.x];\n  switch (own.work) {{\n{}  }}\n",
                     cases));
  }

  std::string entry(std::string_view name, const std::string& body) const {
    return entry_text(
        name, kGroupThreads,
        fmt::format("const __grid_constant__ Pointers<{}> pointers, uint64* sums", arguments_.size()),
        fmt::format("  __shared__ uint64 scratch[{}];\n", kGroupThreads) + body);
  }

  const Node& group_;
  std::vector<std::vector<bool>> allowed_;  // by output and input
  std::vector<Argument> arguments_;
  Texts works_;
  Texts combinations_;  // an operation and a type
  std::vector<std::string> pieces_;
  std::vector<std::string> sums_;
  int64_t blocks_ = 0;
  int64_t places_ = 0;  // sums of a block
};

const GeneratedRegistration kGrouped("fused:clusters", [](const Node& node, const GpuTraits&) {
  return print_grouped_clusters(node);
});

}  // namespace

GeneratedProgram print_grouped_clusters(const Node& group) {
  return GroupPrinter(group).print();
}

}  // namespace tessera::cuda
