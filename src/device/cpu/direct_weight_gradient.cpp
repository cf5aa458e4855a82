// dw[K, tap, C] = sum over the pixels of dy[pixel, K] x[pixel under the tap, C].
//
// A weight has few elements beside the pixels that are summed for each, so that these products wait for
// memory rather than multiply. While one block of pixels is multiplied, the next is fetched to the
// second-level cache, a few rows between any two steps; from there, operands need not be packed.
#include "device/cpu/direct_weight_gradient.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/cpu/blocks.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/panel_product.h"
#include "device/cpu/parallel.h"
#include "device/cpu/thread_workspace.h"
#include "device/cpu/window_rows.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kBlock = 128;                     // pixels; fewer would load and store the sums more often
constexpr int64_t kLargestSums = int64_t{1} << 18;  // floats that stay in the second-level cache
constexpr int64_t kCacheLine = 16;                  // floats

ConvolutionProblem read_problem(const Node& node) {
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  for (const DataType type : {node.input(0)->data_type(), node.output()->data_type()})
    refuse_unless(type == DataType::fp32, "only fp32, not {}", to_string(type));
  ConvolutionProblem problem = make_convolution_problem(shape(node.input(0)), shape(node.output()),
                                                        shape(node.input(1)), node.attributes());
  refuse_unless(problem.groups == 1, "{} groups", problem.groups);
  refuse_unless(problem.input_channels() % vector_width() == 0, "{} channels are no whole vectors of {}",
                problem.input_channels(), vector_width());
  return problem;
}

// To the second-level cache.
void fetch(const float* memory, int64_t elements) {
  for (int64_t i = 0; i < elements; i += kCacheLine) __builtin_prefetch(memory + i, 0, /*locality=*/2);
  // GCC takes a function that only prefetches for one without effect, and removes the calls.
  asm volatile("" : : : "memory");
}

// Two ways to share the work. By pixels, while the sums are small: each thread sums its own pixels. By
// outputs: each thread sums all pixels for its own output channels.
class DirectWeightGradient : public Kernel {
 public:
  explicit DirectWeightGradient(const ConvolutionProblem& problem)
      : window_(problem),
        dense_(problem.is_pointwise()),
        inputs_(problem.input_channels()),
        row_(window_.taps() * inputs_),
        panel_(panel_width()),
        pixels_(cut_into_panels(problem.pixels(), kBlock)),
        outputs_(cut_into_blocks(problem.output_channels(), std::max(kPanelRows, kLargestSums / inputs_))),
        by_pixels_(problem.output_channels() * row_ <= kLargestSums) {
    if (by_pixels_) sums_ = workspace_.shared.book<float>((pixels_.parts - 1) * elements());
    if (!dense_) gathered_ = workspace_.own.book<float>(kBlock * inputs_);
  }

  int64_t workspace_bytes() const override {
    return workspace_.bytes((by_pixels_ ? pixels_ : outputs_).parts);
  }

  void run(const KernelArguments& arguments) override {
    const Run run{.x = static_cast<const float*>(arguments.inputs[0]),
                  .dy = static_cast<const float*>(arguments.inputs[1]),
                  .dw = static_cast<float*>(arguments.outputs[0]),
                  .workspace = arguments.workspace};
    by_pixels_ ? sum_by_pixels(run) : sum_by_outputs(run);
  }

 private:
  struct Run {
    const float* x;
    const float* dy;
    float* dw;
    void* workspace;
  };
  // Pixels of the result, and what lies under a tap there.
  struct PixelBlock {
    Range pixels;
    std::array<const float*, kBlock> x;
  };

  int64_t elements() const { return outputs_.total * row_; }

  void sum_by_pixels(const Run& run) const {
    float* sums = sums_.in(run.workspace);  // of all parts but the first
    for_each_part(pixels_.parts, pixels_.count(), [&](int64_t part, int64_t begin, int64_t end) {
      sum(run, part, {begin, end}, {0, outputs_.total}, part == 0 ? run.dw : sums + (part - 1) * elements());
    });
    for_each_part(pixels_.parts, elements(), [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t part = 1; part < pixels_.parts; ++part) {
        const float* more = sums + (part - 1) * elements();
        for (int64_t i = begin; i < end; ++i) run.dw[i] += more[i];
      }
    });
  }

  void sum_by_outputs(const Run& run) const {
    for_each_part(outputs_.parts, outputs_.count(), [&](int64_t part, int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        sum(run, part, {0, pixels_.count()}, outputs_.block(block), run.dw);
    });
  }

  // sums[outputs, all taps, inputs] over the blocks of pixels
  void sum(const Run& run, int64_t part, Range blocks, Range outputs, float* sums) const {
    float* gathered = gathered_.in(workspace_.own_of(run.workspace, part));
    PixelBlock current;
    PixelBlock next;
    const auto find = [&](int64_t tap, int64_t block, PixelBlock& found) {
      found.pixels = block < blocks.end ? pixels_.block(block) : Range{};
      window_.find(run.x, tap, found.pixels, found.x.data());
    };
    for (int64_t tap = 0; tap < window_.taps(); ++tap) {
      find(tap, blocks.begin, current);
      for (int64_t block = blocks.begin; block < blocks.end; ++block) {
        find(tap, block + 1, next);
        if (!dense_) gather(current, gathered);
        multiply(run, current.pixels, outputs, dense_ ? current.x[0] : gathered, sums + tap * inputs_, next,
                 block > blocks.begin);
        std::swap(current, next);
      }
    }
  }

  void gather(const PixelBlock& block, float* gathered) const {
    for (int64_t i = 0; i < block.pixels.size(); ++i, gathered += inputs_) {
      const float* row = block.x[static_cast<size_t>(i)];
      row == nullptr ? std::fill_n(gathered, inputs_, 0.0F) : std::copy_n(row, inputs_, gathered);
    }
  }

  // x: [pixels, inputs]; the sums begin at the tap.
  void multiply(const Run& run, Range pixels, Range outputs, const float* x, float* sums,
                const PixelBlock& next, bool accumulate) const {
    const int64_t steps =
        quotient_rounded_up(inputs_, panel_) * quotient_rounded_up(outputs.size(), kPanelRows);
    int64_t step = 0;
    for (int64_t column = 0; column < inputs_; column += panel_) {
      for (int64_t output = outputs.begin; output < outputs.end; output += kPanelRows, ++step) {
        const int64_t count = next.pixels.size();
        fetch_rows(run, next, outputs, {count * step / steps, count * (step + 1) / steps});
        multiply_panel({.a = run.dy + pixels.begin * outputs_.total + output,
                        .a_row = 1,
                        .a_depth = outputs_.total,
                        .b = x + column,
                        .b_row = inputs_,
                        .c = sums + output * row_ + column,
                        .c_row = row_,
                        .rows = std::min(kPanelRows, outputs.end - output),
                        .depth = pixels.size(),
                        .width = std::min(panel_, inputs_ - column),
                        .accumulate = accumulate});
      }
    }
  }

  void fetch_rows(const Run& run, const PixelBlock& block, Range outputs, Range rows) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const float* x = block.x[static_cast<size_t>(i)];
      if (x != nullptr) fetch(x, inputs_);
      fetch(run.dy + (block.pixels.begin + i) * outputs_.total + outputs.begin, outputs.size());
    }
  }

  WindowRows window_;
  bool dense_;      // the rows under the tap are the rows of x
  int64_t inputs_;  // channels
  int64_t row_;     // of the weight: all taps of one output channel
  int64_t panel_;   // input channels that are multiplied at once
  Blocks pixels_;
  Blocks outputs_;  // channels
  bool by_pixels_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> sums_;
  backend::WorkspaceArray<float> gathered_;
};

}  // namespace

KernelCandidate direct_weight_gradient_candidate() {
  return checked_candidate(
      "loops.direct_weight_gradient", [](const KernelRequest& request) { read_problem(request.node); },
      [](const KernelRequest& request) {
        return std::make_unique<DirectWeightGradient>(read_problem(request.node));
      });
}

}  // namespace tessera::cpu
