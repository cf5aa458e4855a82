// argmax, top-k and running sums: one block a row.
#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/strided_move.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kMostBlocks = int64_t{1} << 20;

std::string type_of(const Node& node, size_t input) {
  return device_type(node.input(input)->data_type());
}

GeneratedProgram over_rows(const Node& node, int64_t rows, const std::string& statement) {
  return simple_program(node, "rows.cuh", statement, std::min(rows, kMostBlocks), kRowThreads);
}

GeneratedProgram argmax(const Node& node, const GpuTraits&) {
  const auto view =
      backend::view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  return over_rows(node, view.outer * view.inner,
                   fmt::format("argmax<{}>(x0, y0, {}, {}, {});", type_of(node, 0), view.outer * view.inner,
                               view.extent, view.inner));
}

GeneratedProgram top_k(const Node& node, const GpuTraits&) {
  const auto view = backend::view_along(node.input(0)->type().static_shape(), -1);
  return over_rows(node, view.outer,
                   fmt::format("top_k<{}>(x0, y0, y1, {}, {}, {});", type_of(node, 0), view.outer,
                               view.extent, node.attributes().integer("k")));
}

GeneratedProgram cumulative_sum(const Node& node, const GpuTraits&) {
  const auto view =
      backend::view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  const int64_t rows = view.extent == 0 ? 0 : view.outer * view.inner;
  const std::string options =
      fmt::format("<{}, {}, {}>", type_of(node, 0), node.attributes().boolean("exclusive"),
                  node.attributes().boolean("reverse"));
  if (view.inner == 1)
    return over_rows(node, rows,
                     fmt::format("cumulative_sum{}(x0, y0, {}, {});", options, rows, view.extent));
  return over_rows(node, quotient_rounded_up(rows, int64_t{kRowThreads}),
                   fmt::format("cumulative_sum_of_columns{}(x0, y0, {}, {}, {});", options, rows, view.extent,
                               view.inner));
}

const GeneratedRegistration kArgmax("argmax", argmax);
const GeneratedRegistration kTopK("top_k", top_k);
const GeneratedRegistration kCumulativeSum("cumulative_sum", cumulative_sum);

}  // namespace
}  // namespace tessera::cuda
