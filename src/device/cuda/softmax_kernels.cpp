// softmax and cross-entropy: one block a row.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/cross_entropy_pattern.h"
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

// The loss, its gradient and the likeliest class, or some of them.
GeneratedProgram cross_entropy(const Node& node, const GpuTraits& gpu) {
  const backend::CrossEntropyBody body = backend::read_cross_entropy(node);
  RowPlan plan = plan_rows(row_bytes_of(*node.input(body.logits), body.classes), gpu);
  // The loss alone reads a row once, or a smoothed one again from the cache.
  if (!body.gradient.has_value() && !body.likeliest.has_value()) plan.kept_bytes = 0;
  const auto pointer = [](char kind, const std::optional<size_t>& index) {
    return index.has_value() ? fmt::format("{}{}", kind, *index) : "nullptr";
  };
  GeneratedProgram program = over_rows(
      node, body.rows, plan,
      fmt::format("cross_entropy<{}, {}>(x{}, x{}, {}, {}, {}, {}, {}, {}, {}, {:a}, {});", plan.threads,
                  plan.keeps(), body.logits, body.labels, pointer('x', body.loss_gradient),
                  pointer('y', body.loss), pointer('y', body.gradient), pointer('y', body.likeliest),
                  body.rows, body.columns, body.classes, body.smoothing, body.ignored));
  program.may_overwrite = [body](size_t output, size_t input) {
    return output == body.gradient && input == body.logits;
  };
  return program;
}

const GeneratedRegistration kSoftmax("softmax", [](const Node& node, const GpuTraits& gpu) {
  return softmax(node, false, gpu);
});
const GeneratedRegistration kLogSoftmax("log_softmax", [](const Node& node, const GpuTraits& gpu) {
  return softmax(node, true, gpu);
});
const GeneratedRegistration kCrossEntropy("cross_entropy", cross_entropy);
const GeneratedRegistration kCrossEntropyGradient("cross_entropy_gradient", cross_entropy);
const GeneratedRegistration kFusedCrossEntropy("fused:cross_entropy", cross_entropy);

}  // namespace
}  // namespace tessera::cuda
