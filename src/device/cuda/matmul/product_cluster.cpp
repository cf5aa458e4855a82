#include "device/cuda/matmul/product_cluster.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/subgraph_kernel.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "device/cuda/cluster/cluster_printer.h"
#include "device/cuda/codegen/partial_sums.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/matmul_problem.h"
#include "device/cuda/matmul/product_parts.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;
using Layout = ProductClusterLayout;

constexpr int kArchitecture = 90;  // has the instructions; those after it have others
constexpr int64_t kLeastRows = 512, kLeastColumns = 256, kLeastDepth = 256;
// What is read beside the product, of each result: more takes longer to load than the product to multiply.
constexpr int64_t kMostBytesBeside = 8;
// With work before the product: more columns are made of more than one tile, each of which does it anew, and
// so few leave most of a tile empty. What that work reads holds up the product.
constexpr int64_t kLeastColumnsBegun = 64, kMostColumnsBegun = Layout::columns, kMostBytesBesideFactor = 2;

int64_t columns_of(const Value& value) {
  return value.shape().back().value();
}

// Over what comes before the last axis, or over that alone.
bool sums_columns(const Node& reduction, size_t rank) {
  std::vector<bool> columns(rank, true);
  columns.back() = false;
  return backend::reduced_axes(reduction, rank) == columns;
}
bool sums_rows(const Node& reduction, size_t rank) {
  std::vector<bool> rows(rank, false);
  rows.back() = true;
  return backend::reduced_axes(reduction, rank) == rows;
}

bool is_sum(const Node& reduction, size_t rank) {
  return reduction.schema().traits.reduction == ReductionKind::sum &&
         (sums_columns(reduction, rank) || sums_rows(reduction, rank));
}

// The node that makes an output, in the body of a fused one.
const Node* maker_of(const Node& node, size_t output) {
  return node.body() == nullptr ? &node : node.body()->outputs().at(output).value->producer();
}

// Whether all that the work makes is as large as the product, or sums of its columns or rows.
bool keeps_shape(const Node& after, const Value& product) {
  for (size_t i = 0; i < after.outputs().size(); ++i) {
    const Node* made = maker_of(after, i);
    if (made == nullptr) return false;
    const bool reduces = made->schema().traits.reduction != ReductionKind::none;
    if (reduces && !is_sum(*made, product.shape().size())) return false;
    if ((reduces ? made->input(0) : after.output(i))->shape() != product.shape()) return false;
  }
  return true;
}

// Of the operands that are as large as that value, all but itself.
int64_t bytes_beside(const Node& work, const Value& value) {
  int64_t bytes = 0;
  for (const Value* input : work.inputs()) {
    if (input != &value && input->shape() == value.shape()) bytes += size_of(input->data_type());
  }
  return bytes;
}

bool ends_product(const Node& after, const Value& product) {
  return keeps_shape(after, product) && bytes_beside(after, product) <= kMostBytesBeside;
}

bool begins_product(const Node& before) {
  const std::optional<size_t> factor = worked_on(before);
  const Node* made = maker_of(before, 0);
  return before.outputs().size() == 1 && factor.has_value() && made != nullptr &&
         made->schema().traits.reduction == ReductionKind::none &&
         bytes_beside(before, *before.input(*factor)) <= kMostBytesBesideFactor;
}

class ProductClusterSource {
 public:
  ProductClusterSource(const KernelRequest& request, const GpuTraits& gpu, const Layout& layout)
      : node_(request.node),
        gpu_(gpu),
        layout_(layout),
        parts_(parts_of(node_)),
        problem_(make_matmul_problem({.node = *parts_.product,
                                      .frozen_inputs = {},
                                      .deterministic = request.deterministic,
                                      .tf32 = request.tf32})),
        end_(*parts_.end) {
    refuse_unless(layout_.begun == (parts_.begin != nullptr), "{} work before the product",
                  layout_.begun ? "no" : "there is");
    if (layout_.begun) begin_.emplace(*parts_.begin);
    check();
  }

  GeneratedProgram print() {
    const size_t a = place_of_a(), b = place_of(*parts_.product->input(problem_.b));
    PointerList pointers(node_);
    const std::string work = pointers_text(pointers, a) + begin_text(a) + end_text();
    const int64_t row_tiles = quotient_rounded_up(problem_.m, int64_t{kRowsOfACluster}) * Layout::blocks;
    const int64_t column_tiles = quotient_rounded_up(problem_.n, int64_t{Layout::columns});
    // A row is added up by a warp, a column by all that end results.
    const int64_t parts = of_rows() ? column_tiles : row_tiles * layout_.enders();
    const int64_t results = of_rows() ? problem_.m : problem_.n;
    std::vector<Combination> sums;
    for (const ClusterReduction& reduction : end_.reductions()) {
      sums.push_back({program_.workspace_bytes, results, reduction.output});
      program_.workspace_bytes += floats(parts * results);
    }
    const std::string first_part = sums.empty() ? "nullptr" : pointers.workspace(0);
    program_.source =
        "#include \"reduce.cuh\"\n#include \"random.cuh\"\n#include \"product_cluster.cuh\"\n"
        "using namespace tessera;\n" +
        problem_text() + work;
    const std::string parameters =
        fmt::format("const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, {}",
                    pointers.parameters());
    program_.source += entry_text(
        "run", layout_.threads(), parameters,
        fmt::format("  extern __shared__ unsigned char memory[];\n{}"
                    "  ProductCluster<Problem>(a, b, {}, memory).run(Begin{{pointers}}, End{{pointers}});\n",
                    pointers.filled("Pointers", "pointers"), first_part),
        1);
    Launch launch{.entry = "run", .threads = layout_.threads(), .arguments = pointers.arguments()};
    launch.blocks =
        std::min<int64_t>(row_tiles * column_tiles, gpu_.multiprocessors / Layout::blocks * Layout::blocks);
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
  static constexpr int kColumnsOfATile = 64;  // 128 bytes
  static constexpr int kRowsOfACluster = Layout::rows * Layout::blocks;

  void check() const {
    refuse_unless(gpu_.architecture == kArchitecture, "only compute capability 9.0 has its instructions");
    refuse_unless(is_half(problem_.type), "only products of 16 bits");
    refuse_unless(problem_.batch == 1 && !problem_.transpose_a, "only one product of rows of a matrix");
    refuse_unless(problem_.n % Layout::vector == 0 && problem_.k % Layout::vector == 0,
                  "rows that do not begin at multiples of 16 bytes");
    check_work(end_, problem_.n);
    if (begin_.has_value()) {
      check_work(*begin_, problem_.k);
      refuse_unless(begin_->reductions().empty(), "it begins with a reduction");
    }
    for (const ClusterReduction& reduction : end_.reductions()) {
      const Value& reduced = *reduction.node->input(0);
      refuse_unless(is_sum(*reduction.node, reduced.shape().size()) && columns_of(reduced) == problem_.n &&
                        is_floating(reduced.data_type()) && reduced.data_type() != DataType::fp64,
                    "it ends with other than sums of columns or rows");
    }
  }

  // All of a cluster are over the same axes.
  bool of_rows() const {
    if (end_.reductions().empty()) return false;
    const Node& sum = *end_.reductions().front().node;
    return sums_rows(sum, sum.input(0)->shape().size());
  }

  void check_work(const ClusterPrinter& work, int64_t columns) const {
    refuse_unless(work.vector() == Layout::vector, "its work takes {} numbers at a time", work.vector());
    constexpr int64_t kMostElements = int64_t{1} << 31;
    const int64_t rows = quotient_rounded_up(problem_.m, int64_t{kRowsOfACluster}) * kRowsOfACluster;
    refuse_unless(rows * columns < kMostElements, "too many elements");
    refuse_unless(work.space().elements() == problem_.m * columns, "its work is of another shape");
  }

  // Among the node's inputs.
  static size_t place_of(const Value& value) {
    refuse_unless(value.producer() == nullptr, "an operand of the product is made in the node");
    return value.index();
  }

  // Of what the unit copies as the first factor, on which there may be work.
  size_t place_of_a() const {
    if (parts_.before == nullptr) return place_of(*parts_.product->input(problem_.a));
    const std::optional<size_t> factor = worked_on(*parts_.before);
    refuse_unless(factor.has_value(), "the work before the product is on nothing of the factor's type");
    return place_of(*parts_.before->input(*factor));
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
        "  static constexpr bool of_rows = {}, transposed = {}, many = {}, begun = {};\n}};\n",
        device_type(problem_.type), problem_.m, problem_.n, problem_.k, end_.reductions().size(), of_rows(),
        !problem_.transpose_b, layout_.many, layout_.begun);
  }

  // What both structures of work are made of.
  std::string pointers_text(PointerList& pointers, size_t factor) const {
    std::string members;
    for (size_t i = 0; i < node_.inputs().size(); ++i) {
      const bool begins = begin_.has_value() && i != factor && begin_->reads(i);
      if (!begins && !end_.reads(i)) continue;
      const std::string name = fmt::format("x{}", i);
      pointers.input(name, i);
      members += fmt::format("  const {}* {};\n", device_type(node_.input(i)->data_type()), name);
    }
    for (size_t i = 0; i < node_.outputs().size(); ++i) {
      if (end_.is_reduction(i)) continue;
      const std::string name = fmt::format("y{}", i);
      pointers.output(name, i);
      members += fmt::format("  {}* {};\n", device_type(node_.output(i)->data_type()), name);
    }
    return fmt::format("using Index = int32;\nconstexpr int V = {};\nstruct Pointers {{\n{}}};\n",
                       Layout::vector, members);
  }

  std::string begin_text(size_t factor) const {
    if (!begin_.has_value()) return "struct Begin : Pointers {};\n";
    return work_text("Begin", *begin_, factor, "own", "template <typename Element>", "const Element& own", "",
                     begin_->work(false) + "    return q0;\n");
  }

  std::string end_text() const {
    std::string sums;
    for (size_t k = 0; k < end_.reductions().size(); ++k)
      sums += fmt::format("    auto& r{0} = sums[{0}];\n", k);
    return work_text("End", end_, node_.inputs().size(), "load<V>(own)",
                     "template <typename Element, typename Sums>", "const Element* own, Sums& sums", sums,
                     end_.work(of_rows()) + end_.stores("store<Memory::global>"));
  }

  // A structure that the kernel calls, as kernels/product_cluster.cuh has it. `own`: the input that lies in
  // shared memory, which `read_own` gives.
  static std::string work_text(std::string_view name, const ClusterPrinter& printer, size_t own,
                               std::string_view read_own, std::string_view head, std::string_view parameters,
                               std::string_view first, std::string_view work) {
    std::string of_columns, of_results, reads_of_columns, reads_of_results, operands;
    for (const ClusterLoad& operand : printer.loads()) {
      if (operand.input == own) {
        operands += fmt::format("    const auto {} = {};\n", operand.name, read_own);
        continue;
      }
      const bool same = operand.per_column;
      (same ? of_columns : of_results) += fmt::format("    {} {};\n", operand.type, operand.name);
      (same ? reads_of_columns : reads_of_results) +=
          fmt::format("    read.{} = {};\n", operand.name, operand.expression);
      operands += fmt::format("    const auto& {0} = {1}.{0};\n", operand.name, same ? "columns" : "results");
    }
    return fmt::format(
        "struct {0} : Pointers {{\n  struct OfColumns {{\n{1}  }};\n  struct OfResults {{\n{2}  }};\n"
        "  __device__ OfColumns of_columns(Index e) const {{\n    OfColumns read;\n{3}{4}    return read;\n  "
        "}}\n"
        "  __device__ OfResults of_results(Index e) const {{\n    OfResults read;\n{3}{5}    return read;\n  "
        "}}\n"
        "  {6}\n"
        "  __device__ auto operator()(Index e, const OfColumns& columns, const OfResults& results,\n"
        "                             {7}) const {{\n{8}{9}{10}  }}\n}};\n",
        name, of_columns, of_results, printer.coordinates_of_element(), reads_of_columns, reads_of_results,
        head, parameters, operands, first, work);
  }

  const Node& node_;
  const GpuTraits& gpu_;
  const Layout layout_;
  const ProductParts parts_;
  const MatmulProblem problem_;
  const ClusterPrinter end_;
  std::optional<ClusterPrinter> begin_;
  GeneratedProgram program_;
};

KernelCandidate product_candidate(const std::string& name, Context& context, const Layout& layout) {
  KernelCandidate candidate = generated_candidate(
      "product_cluster." + name, context, [layout](const KernelRequest& request, const GpuTraits& gpu) {
        return product_cluster(request, gpu, layout);
      });
  candidate.rounds_between = true;
  candidate.only_tuned = true;
  return candidate;
}

std::vector<KernelCandidate> candidates_of_one(Context& context) {
  return {product_candidate("3", context, {.many = false, .begun = false}),
          product_candidate("7", context, {.many = true, .begun = false}),
          product_candidate("begun", context, {.many = true, .begun = true})};
}

// Work on both sides, of which that before the product is not worth while: the others in one kernel. Where it
// wins that is chosen anew.
KernelCandidate work_apart_candidate(Context& context) {
  const auto graph_of = [](const KernelRequest& request) -> std::shared_ptr<const Graph> {
    return with_work_apart(request.node);
  };
  const auto candidates_inside = [&context](const Node& inner) {
    if (inner.body() == nullptr || inner.attributes().text("kind") != kProductClusterKind)
      return cuda_candidates(inner, context);
    std::vector<KernelCandidate> result = candidates_of_one(context);
    for (KernelCandidate& candidate : result) candidate.only_tuned = false;
    return result;
  };
  KernelCandidate candidate = backend::checked_candidate(
      "work_before_apart", [graph_of, candidates_inside](const KernelRequest& request) -> KernelMaker {
        const ProductParts parts = parts_of(request.node);
        refuse_unless(parts.before != nullptr, "no work before the product");
        refuse_unless(!parts.end->nodes().empty(), "no work after the product");
        return [graph_of, candidates_inside, &request] {
          return backend::make_subgraph_kernel(graph_of(request), request, candidates_inside);
        };
      });
  candidate.rounds_between = true;
  candidate.only_tuned = true;
  candidate.graph = graph_of;
  return candidate;
}

std::vector<KernelCandidate> candidates(const Node&, Context& context) {
  // The nodes apart are what is known to be fast, and take no time to compile.
  std::vector<KernelCandidate> result{
      backend::unfused_candidate([&context](const Node& inner) { return cuda_candidates(inner, context); })};
  for (KernelCandidate& candidate : candidates_of_one(context)) result.push_back(std::move(candidate));
  result.push_back(work_apart_candidate(context));
  return result;
}

const CudaKernelRegistration kProductCluster({.key = "fused:product_cluster",
                                              .candidates = candidates,
                                              .tunable = true});

}  // namespace

bool clusters_product(const Node* before, const Node& product, const Node* after, const GpuTraits& gpu) {
  const Value& y = *product.output();
  if (gpu.architecture != kArchitecture || !is_half(y.data_type()) || !y.type().is_static()) return false;
  const Node& matmul = *backend::read_chain(product).main;
  const int64_t n = columns_of(y), k = columns_of(*matmul.input(0));
  const int64_t rows = y.type().element_count() / std::max<int64_t>(n, 1);
  if (matmul.input(1)->shape().size() != 2 || matmul.attributes().boolean("transpose_a") ||
      rows < kLeastRows || n % Layout::vector != 0 || k < kLeastDepth)
    return false;
  if (after != nullptr && !ends_product(*after, y)) return false;
  if (before == nullptr) return after != nullptr && n >= kLeastColumns;
  return n >= kLeastColumnsBegun && n <= kMostColumnsBegun && k % Layout::vector == 0 &&
         begins_product(*before);
}

GeneratedProgram product_cluster(const KernelRequest& request, const GpuTraits& gpu, const Layout& layout) {
  return ProductClusterSource(request, gpu, layout).print();
}

}  // namespace tessera::cuda
