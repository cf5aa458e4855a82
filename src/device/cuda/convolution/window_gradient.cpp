#include "device/cuda/convolution/window_gradient.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/partial_sums.h"
#include "kernels/window_gradient_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kWindow = WindowGradientLayout::window;
constexpr int64_t kSlice = WindowGradientLayout::slice;

// The problem P of kernels/warpgroup_window_gradient.cuh.
struct WindowGradientProblem {
  Shape x, dy;
  int64_t item_rows = 1;

  explicit WindowGradientProblem(const Node& node)
      : x(node.input(0)->type().static_shape()), dy(node.input(1)->type().static_shape()) {}

  int64_t rows() const { return x[0] * x[1]; }
  WindowGradientLayout layout() const { return {x[2], item_rows}; }
  int64_t slices() const { return quotient_rounded_up(x[3], kSlice) * quotient_rounded_up(dy[3], kSlice); }
  int64_t shared_bytes() const { return floats(layout().elements()); }

  std::string print() const {
    return fmt::format(
        "#include \"warpgroup_window_gradient.cuh\"\nusing namespace tessera;\nstruct Problem {{\n"
        "  static constexpr int images = {}, height = {}, width = {}, inputs = {}, outputs = {}, item_rows = "
        "{};\n}};\n",
        x[0], x[1], x[2], x[3], dy[3], item_rows);
  }
};

WindowGradientProblem read_problem(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const Attributes& attributes = node.attributes();
  const DataType type = node.output()->data_type();
  refuse_unless(gpu.architecture == 90, "no warpgroups that multiply");
  refuse_unless(type == DataType::fp32, "left to cuDNN in 16 bits");
  refuse_unless_multiplied(type, request.tf32);
  WindowGradientProblem problem(node);
  refuse_unless(problem.x.size() == 4, "{} spatial axes", problem.x.size() - 2);
  refuse_unless(attributes.integer("groups") == 1, "{} groups", attributes.integer("groups"));
  for (const char* name : {"dilations", "strides", "padding_low", "padding_high"})
    refuse_unless(attributes.integers(name) == std::vector<int64_t>{1, 1}, "{} other than 1", name);
  const Shape window = node.output()->type().static_shape();
  refuse_unless(window[1] == kWindow && window[2] == kWindow, "a window of {} x {}", window[1], window[2]);
  refuse_unless(problem.x[3] % kSlice == 0 && problem.dy[3] % kSlice == 0, "{} and {} channels", problem.x[3],
                problem.dy[3]);
  // Of narrower rows too much is padding, and their items have few products between two barriers: for 14
  // pixels 373 us where cuDNN takes 341, for 7 pixels 440 where it takes 287.
  constexpr int64_t kLeastWidth = 16;
  refuse_unless(problem.x[2] >= kLeastWidth, "rows of {} pixels", problem.x[2]);
  constexpr int64_t kMostRows = int64_t{1} << 20;  // ints hold the elements of the workspace and of an image
  refuse_unless(problem.rows() > 0 && problem.rows() < kMostRows, "{} rows", problem.rows());
  constexpr int64_t kWideRow = 32;
  if (problem.layout().padded_width() <= kWideRow && problem.rows() % 2 == 0) problem.item_rows = 2;
  refuse_unless(problem.shared_bytes() <= gpu.block_shared_bytes(1), "rows of {} bytes of shared memory",
                problem.shared_bytes());
  return problem;
}

GeneratedProgram window_gradient(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const WindowGradientProblem problem = read_problem(request, gpu);
  constexpr int64_t kLeastItems = 4;  // of a block, which leaves as many parts as a large one
  const int64_t items = problem.rows() / problem.item_rows;
  const int64_t blocks =
      std::max<int64_t>(std::min(items / kLeastItems, gpu.multiprocessors / problem.slices()), 1);
  PointerList pointers(node);
  pointers.input("x", 0);
  pointers.input("dy", 1);
  pointers.workspace("parts", 0);
  GeneratedProgram program;
  program.source = problem.print();
  const int64_t results = node.output()->type().element_count();
  program.workspace_bytes = floats(blocks * results);
  add_run(program, pointers, "WindowGradientPointers", "window_gradient", blocks * problem.slices(),
          problem.shared_bytes(), static_cast<int>(WindowGradientLayout::threads));
  add_combine(program, node, {{.offset = 0, .results = results, .output = 0}}, blocks);
  return program;
}

}  // namespace

KernelCandidate window_gradient_candidate(Context& context) {
  return generated_candidate("window_gradient", context, window_gradient);
}

}  // namespace tessera::cuda
