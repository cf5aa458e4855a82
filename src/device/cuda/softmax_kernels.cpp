// softmax and cross-entropy: one block a row.
#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/strided_move.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

// How a block of softmax.cuh works on rows whose elements lie beside each other.
struct RowPlan {
  int threads = kRowThreads;
  int64_t kept_bytes = 0;  // of shared memory for a row that is read twice; 0: it is not kept

  bool keeps() const { return kept_bytes > 0; }
};

// Of few threads for short rows, and so many that multiprocessors have all the reads under way that they can.
RowPlan plan_rows(int64_t row_bytes, const GpuTraits& gpu) {
  constexpr int64_t kAccess = 16;
  constexpr int64_t kScratch = 1024;  // what the kernels declare themselves, rounded up
  RowPlan plan;
  plan.threads = row_bytes < (int64_t{8} << 10) ? kRowThreads : row_bytes < (int64_t{32} << 10) ? 256 : 512;
  const int64_t wanted = round_up(row_bytes, kAccess) + kAccess;
  if (wanted + kScratch <= gpu.block_shared_bytes(1)) plan.kept_bytes = wanted;
  return plan;
}

int64_t row_bytes_of(const Value& x, int64_t extent) {
  return extent * static_cast<int64_t>(size_of(x.data_type()));
}

GeneratedProgram over_rows(const Node& node, int64_t rows, const RowPlan& plan,
                           const std::string& statement) {
  constexpr int64_t kMostBlocks = int64_t{1} << 20;
  GeneratedProgram program =
      simple_program(node, "softmax.cuh", statement, std::min(rows, kMostBlocks), plan.threads);
  program.launches.front().shared_bytes = plan.kept_bytes;
  return program;
}

GeneratedProgram softmax(const Node& node, bool logarithm, const GpuTraits& gpu) {
  const auto view =
      backend::view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  const RowPlan plan =
      view.inner == 1 ? plan_rows(row_bytes_of(*node.input(0), view.extent), gpu) : RowPlan{};
  const int64_t rows = view.extent == 0 ? 0 : view.outer * view.inner;
  return over_rows(node, rows, plan,
                   fmt::format("softmax<{}, {}, {}, {}>(x0, y0, {}, {});", plan.threads,
                               std::max<int64_t>(view.inner, 1), plan.keeps(), logarithm, rows, view.extent));
}

GeneratedProgram cross_entropy(const Node& node, const GpuTraits& gpu) {
  const Shape shape = node.input(0)->type().static_shape();
  const bool is_gradient = node.inputs().size() > 2;
  const int64_t classes = ops::class_count(node.attributes(), shape[1]);
  RowPlan plan = plan_rows(row_bytes_of(*node.input(0), classes), gpu);
  // The loss reads a row once.
  if (!is_gradient) plan.kept_bytes = 0;
  const std::string options =
      is_gradient ? fmt::format("{}, {}", plan.threads, plan.keeps()) : std::to_string(plan.threads);
  return over_rows(
      node, shape[0], plan,
      fmt::format("{}<{}>(x0, x1, {}y0, {}, {}, {}, {:a}, {});", node.operator_name(), options,
                  is_gradient ? "x2, " : "", shape[0], shape[1], classes, node.attributes().real("smoothing"),
                  node.attributes().integer("ignored_label")));
}

const GeneratedRegistration kSoftmax("softmax", [](const Node& node, const GpuTraits& gpu) {
  return softmax(node, false, gpu);
});
const GeneratedRegistration kLogSoftmax("log_softmax", [](const Node& node, const GpuTraits& gpu) {
  return softmax(node, true, gpu);
});
const GeneratedRegistration kCrossEntropy("cross_entropy", cross_entropy);
const GeneratedRegistration kCrossEntropyGradient("cross_entropy_gradient", cross_entropy);

}  // namespace
}  // namespace tessera::cuda
