#include "device/cuda/matmul/ended_product.h"

#include <algorithm>
#include <memory>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/subgraph_kernel.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"
#include "tessera/passes/fuse.h"

#include "device/cuda/cluster/cluster_printer.h"
#include "device/cuda/codegen/partial_sums.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/matmul_problem.h"
#include "kernels/ended_product_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int kArchitecture = 90;  // has the instructions; those after it have others
constexpr int64_t kLeastRows = 512, kLeastColumns = 256, kLeastDepth = 256;
// What is read beside the product, of each result: more takes longer to load than the product to multiply.
constexpr int64_t kMostBytesBeside = 8;

int64_t columns_of(const Value& value) {
  return value.shape().back().value();
}

bool sums_columns(const Node& reduction, size_t rank) {
  std::vector<bool> columns(rank, true);
  columns.back() = false;
  return reduction.schema().traits.reduction == ReductionKind::sum &&
         backend::reduced_axes(reduction, rank) == columns;
}

// Whether all that the reader makes is as large as the product, or a sum over its columns.
bool keeps_shape(const Node& reader, const Value& product) {
  const auto fits = [&](const Node& made) {
    if (made.schema().traits.reduction != ReductionKind::none)
      return made.input(0)->shape() == product.shape() && sums_columns(made, product.shape().size());
    return made.output()->shape() == product.shape();
  };
  if (reader.body() == nullptr) return fits(reader);
  return std::all_of(reader.body()->outputs().begin(), reader.body()->outputs().end(),
                     [&](const auto& output) {
                       return output.value->producer() != nullptr && fits(*output.value->producer());
                     });
}

int64_t bytes_beside(const Node& reader, const Value& product) {
  int64_t bytes = 0;
  for (const Value* input : reader.inputs()) {
    if (input != &product && input->shape() == product.shape()) bytes += size_of(input->data_type());
  }
  return bytes;
}

// What comes after the product as a body of its own, whose inputs are the node's and, the last one, the
// product.
std::unique_ptr<Graph> work_after(const Node& node) {
  auto work = std::make_unique<Graph>("end");
  ValueMapping mapping;
  for (const auto& input : node.body()->inputs())
    mapping[input.get()] = work->add_input(InputRole::input, input->name(), input->type());
  const auto copy = [&](const Graph& body, const auto& copy_body) -> void {
    for (const auto& inner : body.nodes()) {
      if (inner->operator_name() == "matmul") {
        const Value* product = inner->output();
        mapping[product] = work->add_input(InputRole::input, "product", product->type());
      } else if (const Graph* own = inner->body(); own != nullptr) {
        for (const auto& input : own->inputs())
          mapping[input.get()] = mapping.at(inner->input(input->index()));
        copy_body(*own, copy_body);
        for (size_t i = 0; i < own->outputs().size(); ++i)
          mapping[inner->output(i)] = mapping.at(own->outputs()[i].value);
      } else {
        copy_node(*inner, *work, mapping);
      }
    }
  };
  copy(*node.body(), copy);
  for (const Graph::Output& output : node.body()->outputs())
    work->add_output(output.name, mapping.at(output.value));
  decompose_composites(*work);
  return work;
}

// The member that is the product, alone or fused.
const Node& product_of(const Node& node) {
  for (const auto& inner : node.body()->nodes()) {
    if (inner->operator_name() == "matmul" ||
        (inner->body() != nullptr && inner->attributes().text("kind") == "matmul"))
      return *inner;
  }
  backend::refuse("there is no product in it");
}

class EndedProductSource {
 public:
  EndedProductSource(const KernelRequest& request, const GpuTraits& gpu, bool many)
      : node_(request.node),
        gpu_(gpu),
        layout_{many},
        inner_(product_of(node_)),
        problem_(make_matmul_problem({.node = inner_,
                                      .frozen_inputs = {},
                                      .deterministic = request.deterministic,
                                      .tf32 = request.tf32})),
        work_(work_after(node_)),
        printer_(*work_) {
    check();
  }

  GeneratedProgram print() {
    const size_t a = place_of(problem_.a), b = place_of(problem_.b);
    PointerList pointers(node_);
    const std::string end = end_text(pointers);
    // Those of each warp that adds up.
    const int64_t row_tiles =
        quotient_rounded_up(problem_.m, int64_t{Layout::rows * Layout::blocks}) * Layout::blocks;
    const int64_t parts = row_tiles * layout_.enders();
    std::vector<Combination> sums;
    for (const ClusterReduction& reduction : printer_.reductions()) {
      sums.push_back({program_.workspace_bytes, problem_.n, reduction.output});
      program_.workspace_bytes += floats(parts * problem_.n);
    }
    const std::string first_part = sums.empty() ? "nullptr" : pointers.workspace(0);
    program_.source =
        "#include \"reduce.cuh\"\n#include \"random.cuh\"\n#include \"ended_product.cuh\"\n"
        "using namespace tessera;\n" +
        problem_text() + end;
    const std::string parameters =
        fmt::format("const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, {}",
                    pointers.parameters());
    program_.source += entry_text("run", layout_.threads(), parameters,
                                  fmt::format("  extern __shared__ unsigned char memory[];\n{}"
                                              "  EndedProduct<Problem>(a, b, {}, memory).run(end);\n",
                                              pointers.filled("End", "end"), first_part),
                                  1);
    Launch launch{.entry = "run", .threads = layout_.threads(), .arguments = pointers.arguments()};
    launch.blocks = std::min<int64_t>(row_tiles * quotient_rounded_up(problem_.n, int64_t{Layout::columns}),
                                      gpu_.multiprocessors / Layout::blocks * Layout::blocks);
    launch.cluster = Layout::blocks;
    launch.shared_bytes = Layout::shared_bytes;
    launch.maps = {map_of(a, problem_.m, problem_.k, Layout::rows, Layout::depth),
                   problem_.transpose_b
                       ? map_of(b, problem_.n, problem_.k, Layout::columns / Layout::blocks, Layout::depth)
                       : map_of(b, problem_.k, problem_.n, Layout::depth, kColumnsOfATile)};
    program_.launches.push_back(std::move(launch));
    if (!sums.empty()) add_combine(program_, node_, sums, parts);
    return std::move(program_);
  }

 private:
  using Layout = EndedProductLayout;
  static constexpr int kColumnsOfATile = 64;  // 128 bytes

  void check() const {
    refuse_unless(gpu_.architecture == kArchitecture, "only compute capability 9.0 has its instructions");
    refuse_unless(is_half(problem_.type), "only products of 16 bits");
    refuse_unless(problem_.batch == 1 && !problem_.transpose_a, "only one product of rows of a matrix");
    refuse_unless(problem_.n % Layout::vector == 0 && problem_.k % Layout::vector == 0,
                  "rows that do not begin at multiples of 16 bytes");
    refuse_unless(printer_.vector() == Layout::vector, "its work takes {} numbers at a time",
                  printer_.vector());
    constexpr int64_t kMostElements = int64_t{1} << 31;
    refuse_unless(problem_.m * problem_.n < kMostElements, "too many results");
    refuse_unless(printer_.space().elements() == problem_.m * problem_.n, "its work is of another shape");
    for (const ClusterReduction& reduction : printer_.reductions()) {
      const Value& reduced = *reduction.node->input(0);
      refuse_unless(sums_columns(*reduction.node, reduced.shape().size()) &&
                        columns_of(reduced) == problem_.n && is_floating(reduced.data_type()) &&
                        reduced.data_type() != DataType::fp64,
                    "it ends with other than sums of columns");
    }
  }

  // Among the node's inputs, of one of the product's.
  size_t place_of(size_t input) const {
    const Value* value = inner_.input(input);
    refuse_unless(value->producer() == nullptr, "an operand of the product is made in the node");
    return value->index();
  }

  TensorMapArgument map_of(size_t input, int64_t rows, int64_t columns, int64_t tile_rows,
                           int64_t tile_columns) const {
    return {.matrix = {Argument::Kind::input, static_cast<int64_t>(input)},
            .type = problem_.type,
            .rows = rows,
            .columns = columns,
            .tile_rows = tile_rows,
            .tile_columns = tile_columns};
  }

  std::string problem_text() const {
    return fmt::format(
        "struct Problem {{\n  using Element = {};\n  static constexpr int m = {}, n = {}, k = {}, sums = "
        "{};\n"
        "  static constexpr bool transposed = {}, many = {};\n}};\n",
        device_type(problem_.type), problem_.m, problem_.n, problem_.k, printer_.reductions().size(),
        !problem_.transpose_b, layout_.many);
  }

  // The structure of pointers that the kernel calls, as kernels/ended_product.cuh has it.
  std::string end_text(PointerList& pointers) {
    std::string members, work;
    std::string of_columns, of_results, reads_of_columns, reads_of_results;
    const size_t product = work_->inputs().size() - 1;
    for (size_t i = 0; i < product; ++i) {
      if (!printer_.reads(i)) continue;
      const std::string name = fmt::format("x{}", i);
      pointers.input(name, i);
      members += fmt::format("  const {}* {};\n", device_type(node_.input(i)->data_type()), name);
    }
    for (size_t i = 0; i < node_.outputs().size(); ++i) {
      if (is_sum(i)) continue;
      const std::string name = fmt::format("y{}", i);
      pointers.output(name, i);
      members += fmt::format("  {}* {};\n", device_type(node_.output(i)->data_type()), name);
    }
    for (const ClusterLoad& operand : printer_.loads()) {
      if (operand.input == product) {
        work += fmt::format("    const auto {} = load<V>(product);\n", operand.name);
        continue;
      }
      const bool same = operand.per_column;
      (same ? of_columns : of_results) += fmt::format("    {} {};\n", operand.type, operand.name);
      (same ? reads_of_columns : reads_of_results) +=
          fmt::format("    read.{} = {};\n", operand.name, operand.expression);
      work += fmt::format("    const auto& {0} = {1}.{0};\n", operand.name, same ? "columns" : "results");
    }
    for (size_t k = 0; k < printer_.reductions().size(); ++k)
      work += fmt::format("    auto& r{0} = sums[{0}];\n", k);
    return fmt::format(
        "using Index = int32;\nconstexpr int V = {0};\nstruct End {{\n{1}  struct OfColumns {{\n{2}  }};\n"
        "  struct OfResults {{\n{3}  }};\n"
        "  __device__ OfColumns of_columns(Index e) const {{\n    OfColumns read;\n{4}{5}    return read;\n  "
        "}}\n"
        "  __device__ OfResults of_results(Index e) const {{\n    OfResults read;\n{4}{6}    return read;\n  "
        "}}\n"
        "  template <typename Sums>\n"
        "  __device__ void operator()(Index e, const OfColumns& columns, const OfResults& results,\n"
        "                             const Problem::Element* product, Sums& sums) const {{\n{7}{8}  "
        "}}\n}};\n",
        Layout::vector, members, of_columns, of_results, printer_.coordinates_of_element(), reads_of_columns,
        reads_of_results, work, printer_.work(false, "store<Memory::global>"));
  }

  bool is_sum(size_t output) const {
    return std::any_of(printer_.reductions().begin(), printer_.reductions().end(),
                       [&](const ClusterReduction& reduction) { return reduction.output == output; });
  }

  const Node& node_;
  const GpuTraits& gpu_;
  const Layout layout_;
  const Node& inner_;
  const MatmulProblem problem_;
  const std::unique_ptr<Graph> work_;
  const ClusterPrinter printer_;
  GeneratedProgram program_;
};

std::vector<KernelCandidate> candidates(const Node&, Context& context) {
  // The two apart are what is known to be fast, and takes no time to compile.
  std::vector<KernelCandidate> result{
      backend::unfused_candidate([&context](const Node& inner) { return cuda_candidates(inner, context); })};
  for (const bool many : {false, true}) {
    KernelCandidate ended = generated_candidate(many ? "ended_product.7" : "ended_product.3", context,
                                                [many](const KernelRequest& request, const GpuTraits& gpu) {
                                                  return ended_product(request, gpu, many);
                                                });
    ended.rounds_between = true;
    ended.only_tuned = true;
    result.push_back(std::move(ended));
  }
  return result;
}

const CudaKernelRegistration kEndedProduct({.key = "fused:ended_product",
                                            .candidates = candidates,
                                            .tunable = true});

}  // namespace

bool ends_product(const Node& product, const Node& reader, const GpuTraits& gpu) {
  const Value& y = *product.output();
  if (gpu.architecture != kArchitecture || !is_half(y.data_type()) || !y.type().is_static()) return false;
  const Node& matmul = *backend::read_chain(product).main;
  const int64_t n = columns_of(y), rows = y.type().element_count() / std::max<int64_t>(n, 1);
  return matmul.input(1)->shape().size() == 2 && !matmul.attributes().boolean("transpose_a") &&
         rows >= kLeastRows && n >= kLeastColumns && n % EndedProductLayout::vector == 0 &&
         columns_of(*matmul.input(0)) >= kLeastDepth && keeps_shape(reader, y) &&
         bytes_beside(reader, y) <= kMostBytesBeside;
}

GeneratedProgram ended_product(const KernelRequest& request, const GpuTraits& gpu, bool many) {
  return EndedProductSource(request, gpu, many).print();
}

}  // namespace tessera::cuda
