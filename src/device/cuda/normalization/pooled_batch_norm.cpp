// Batch normalization with relu before max pooling, and the gradients of the three, without the tensor
// between them.
#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/pool_geometry.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/codegen/partial_sums.h"
#include "kernels/block_sizes.h"
#include "kernels/pool_tile_layout.h"

namespace tessera::cuda {
namespace {

using backend::PoolGeometry;
using backend::refuse_unless;

constexpr int kThreads = 256;
constexpr int kNeighbors = 2;          // windows side by side that share columns of x
constexpr int64_t kMostUnrolled = 36;  // steps of a thread at one place

// The problem P of kernels/pooled_batch_norm.cuh and the grid that works on it.
class PooledProblem {
 public:
  PooledProblem(const PoolGeometry& geometry, double epsilon) : geometry_(geometry), epsilon_(epsilon) {
    refuse_unless(geometry.input[0] == 1 && geometry.window[0] == 1, "three spatial axes");
    refuse_unless(geometry.channels % vector() == 0, "{} channels are not whole accesses of {}",
                  geometry.channels, vector());
    while (geometry.channels % (2 * lanes_ * vector()) == 0 && lanes_ < kMostLanes) lanes_ *= 2;
  }

  int64_t channels() const { return geometry_.channels; }

  // Blocks that fill the GPU and stay to the end, so that each reads its channels' numbers once.
  Launch launch(std::string entry, int64_t places, int blocks_of_a_multiprocessor,
                const GpuTraits& gpu) const {
    const int64_t slices = geometry_.channels / (lanes_ * vector());
    const int64_t useful = quotient_rounded_up(places, kThreads / lanes_);
    const int64_t most =
        std::max<int64_t>(int64_t{gpu.multiprocessors} * blocks_of_a_multiprocessor / slices, 1);
    return {.entry = std::move(entry),
            .blocks = std::min(useful, most),
            .chunks = slices,
            .threads = kThreads,
            .arguments = {}};
  }

  std::string print() const {
    const int64_t rows = geometry_.input_rows() * geometry_.input[2];
    const int64_t pixels = std::max(rows, geometry_.output_rows() * geometry_.output[2]);
    const bool narrow = pixels * geometry_.channels < (int64_t{1} << 30);
    const auto axis = [&](std::string_view name, int n) {
      return fmt::format(
          "  struct {} {{\n    static constexpr int input = {}, output = {}, window = {}, stride = {}, "
          "padding = {};\n"
          "  }};\n",
          name, geometry_.input[n], geometry_.output[n], geometry_.window[n], geometry_.strides[n],
          geometry_.padding[n]);
    };
    return fmt::format(
        "#include \"pooled_batch_norm.cuh\"\nusing namespace tessera;\nstruct Problem {{\n"
        "  using Element = {};\n  using Index = {};\n"
        "  static constexpr int images = {}, channels = {}, lanes = {}, threads = {}, neighbors = {};\n"
        "  static constexpr int64 rows = {};\n  static constexpr float epsilon = {};\n"
        "  static constexpr bool has_sum = false, masks_by_result = false, masks_by_x = true, emits = "
        "false;\n"
        "{}{}}};\n",
        device_type(geometry_.type), narrow ? "int32" : "int64", geometry_.images, geometry_.channels, lanes_,
        kThreads, kNeighbors, rows, float_literal(epsilon_), axis("Height", 1), axis("Width", 2));
  }

 private:
  static constexpr int64_t kMostLanes = 32;

  int64_t vector() const { return 16 / static_cast<int64_t>(size_of(geometry_.type)); }

  PoolGeometry geometry_;
  double epsilon_;
  int64_t lanes_ = 1;
};

GeneratedProgram forward(const Node& node, const GpuTraits& gpu) {
  constexpr int kBlocks = 3;  // of a multiprocessor: a thread holds a row of each window
  const backend::PooledBatchNormBody body = backend::read_pooled_batch_norm(node);
  const PoolGeometry geometry = backend::pool_geometry(*body.pool);
  const PooledProblem problem(geometry, body.epsilon);
  const int64_t columns = (kNeighbors - 1) * geometry.strides[2] + geometry.window[2];
  refuse_unless(geometry.window[1] * columns <= kMostUnrolled, "a window of {} x {}", geometry.window[1],
                geometry.window[2]);
  PointerList pointers(node);
  pointers.input("x", body.x);
  pointers.input("scale", body.scale);
  pointers.input("bias", body.bias);
  pointers.input("mean", body.mean);
  pointers.input("variance", body.variance);
  pointers.output("y", 0);
  pointers.output("position", 1);
  const int64_t places = geometry.output_rows() * quotient_rounded_up(geometry.output[2], kNeighbors);
  Launch launch = problem.launch("run", places, kBlocks, gpu);
  launch.arguments = pointers.arguments();
  GeneratedProgram program;
  program.source = problem.print() + calling_entry("run", kThreads, pointers, "PooledBatchNorm<Problem>",
                                                   "batch_norm_max_pool", kBlocks);
  program.launches = {std::move(launch)};
  return program;
}

int64_t windows_over_tile(const PoolGeometry& geometry, int axis) {
  return PoolTileLayout{geometry.window[axis], geometry.strides[axis], geometry.padding[axis]}.count();
}

// Sums of each block, their totals, and what is made of them: three launches.
GeneratedProgram backward(const Node& node, const GpuTraits& gpu) {
  constexpr int kBlocks = 2;  // of a multiprocessor: a thread holds a tile and the windows over it
  const backend::PooledBatchNormGradientBody body = backend::read_pooled_batch_norm_gradient(node);
  const backend::BatchNormGradientBody& norm = body.norm;
  refuse_unless(norm.dx.has_value(), "nothing reads the gradient of x");
  const PoolGeometry geometry = backend::pool_geometry(*body.pool);
  const PooledProblem problem(geometry, norm.epsilon);
  const int64_t tile = geometry.strides[1] * geometry.strides[2];
  const int64_t windows = windows_over_tile(geometry, 1) * windows_over_tile(geometry, 2);
  refuse_unless(tile * windows <= kMostUnrolled, "{} windows over each {} x {} elements", windows,
                geometry.strides[1], geometry.strides[2]);

  PointerList pointers(node);
  pointers.input("norm.x", norm.x);
  pointers.input("norm.scale", norm.scale);
  pointers.input("norm.bias", norm.bias);
  pointers.input("norm.mean", norm.mean);
  pointers.input("norm.variance", norm.variance);
  pointers.output("norm.dx", norm.dx);
  pointers.output("norm.dscale", norm.dscale);
  pointers.output("norm.dbias", norm.dbias);
  pointers.input("dy", norm.dy);
  pointers.input("position", body.positions);

  const int64_t places = geometry.images * quotient_rounded_up(geometry.input[1], geometry.strides[1]) *
                         quotient_rounded_up(geometry.input[2], geometry.strides[2]);
  Launch add = problem.launch("add", places, kBlocks, gpu);
  const int64_t results = 2 * problem.channels();
  Launch combine{.entry = "combine",
                 .blocks = quotient_rounded_up(results, int64_t{kCombineResults}),
                 .threads = kCombineThreads,
                 .arguments = {}};
  const int64_t totals = floats(add.blocks * results);
  PointerList of_sums(node);
  const std::string parts_name = of_sums.workspace(0), totals_name = of_sums.workspace(totals);
  pointers.workspace("parts", 0);
  pointers.workspace("totals", totals);
  add.arguments = pointers.arguments();
  Launch write = add;
  write.entry = "write";
  combine.arguments = of_sums.arguments();

  const auto entry_of = [&](std::string_view name, std::string_view function) {
    return calling_entry(name, kThreads, pointers, "UnpooledGradient<Problem>", function, kBlocks);
  };
  GeneratedProgram program;
  program.workspace_bytes = totals + floats(results);
  program.source = problem.print() + entry_of("add", "add_unpooled") +
                   entry_text("combine", kCombineThreads, of_sums.parameters(),
                              fmt::format("  combine_chunks<Sum>({}, {}, {}, 1.0, {});\n", parts_name,
                                          results, add.blocks, totals_name),
                              1) +
                   entry_of("write", "write_unpooled");
  program.launches = {std::move(add), std::move(combine), std::move(write)};
  // A thread has read a tile of x, which no other reads any more, before it writes there.
  program.may_overwrite = [dx = norm.dx, x = norm.x, dy = norm.dy](size_t output, size_t input) {
    return output == dx && input == x && input != dy;
  };
  return program;
}

const GeneratedRegistration kForward("fused:batch_norm_max_pool", forward);
const GeneratedRegistration kBackward("fused:max_pool_batch_norm_gradient", backward);

}  // namespace
}  // namespace tessera::cuda
