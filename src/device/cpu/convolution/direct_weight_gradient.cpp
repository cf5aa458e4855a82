// dw[K, tap, C] = sum over the pixels of dy[pixel, K] x[pixel under the tap, C].
//
// A weight has few elements beside the pixels that are summed for each, so that these products wait for
// memory rather than multiply. While one block of pixels is multiplied, the next is fetched to the
// second-level cache, a few rows between any two steps; from there, operands need not be packed, which would
// cost more than it saves. Sums are kept where they lie side by side, and copied to the weight at the end.
#include "device/cpu/convolution/direct_weight_gradient.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/cpu/convolution/window_rows.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/caches.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kBlock = 160;                     // pixels; fewer would load and store the sums more often
constexpr int64_t kLargestOutputs = 256;            // channels of which a thread keeps sums at a time
constexpr int64_t kLargestInputs = 512;             // likewise
constexpr int64_t kLargestSums = int64_t{1} << 18;  // floats that each thread may have for all of the weight

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

// Two ways to share the work. By pixels, while the sums are small: each thread sums its own pixels. By
// outputs: each thread sums all pixels for some of the output channels.
class DirectWeightGradient : public Kernel {
 public:
  explicit DirectWeightGradient(const ConvolutionProblem& problem)
      : window_(problem),
        dense_(problem.is_pointwise()),
        inputs_(problem.input_channels()),
        row_(window_.taps() * inputs_),
        panel_(panel_width()),
        pixels_(cut_into_panels(problem.pixels(), kBlock)),
        by_pixels_(problem.output_channels() * row_ <= kLargestSums),
        outputs_(by_pixels_ ? cut_evenly(problem.output_channels(), kLargestOutputs, kPanelRows)
                            : cut_into_blocks(problem.output_channels(), kLargestOutputs)),
        columns_(cut_evenly(inputs_, kLargestInputs, panel_)) {
    if (by_pixels_) parts_ = workspace_.shared.book<float>((pixels_.parts - 1) * elements());
    if (!dense_) gathered_ = workspace_.own.book<float>(kBlock * columns_.size);
    sums_ = workspace_.own.book<float>(outputs_.size * columns_.size);
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
  // What a thread sums at a time.
  struct Piece {
    int64_t tap;
    Range outputs;
    Range inputs;
    float* gathered;  // [pixels, inputs]
    float* sums;      // [panels of inputs, outputs, panel]
  };
  // Pixels of the result, and what lies under a tap there.
  struct PixelBlock {
    Range pixels;
    std::array<const float*, kBlock> x;
  };

  int64_t elements() const { return outputs_.total * row_; }

  void sum_by_pixels(const Run& run) const {
    float* parts = parts_.in(run.workspace);  // all but the first
    for_each_part(pixels_.parts, pixels_.count(), [&](int64_t part, int64_t begin, int64_t end) {
      float* dw = part == 0 ? run.dw : parts + (part - 1) * elements();
      for (int64_t block = 0; block < outputs_.count(); ++block)
        sum(run, part, {begin, end}, outputs_.block(block), dw);
    });
    for_each_part(pixels_.parts, elements(), [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t part = 1; part < pixels_.parts; ++part) {
        const float* more = parts + (part - 1) * elements();
        for (int64_t i = begin; i < end; ++i) run.dw[i] += more[i];
      }
    });
  }

  void sum_by_outputs(const Run& run) const {
    for_each_block(outputs_.parts, outputs_.count(), Order::forwards, [&](int64_t thread, int64_t block) {
      sum(run, thread, {0, pixels_.count()}, outputs_.block(block), run.dw);
    });
  }

  // dw[outputs, all taps, all inputs] over the blocks of pixels
  void sum(const Run& run, int64_t thread, Range blocks, Range outputs, float* dw) const {
    void* memory = workspace_.own_of(run.workspace, thread);
    for (int64_t tap = 0; tap < window_.taps(); ++tap) {
      for (int64_t column = 0; column < columns_.count(); ++column) {
        const Piece piece{tap, outputs, columns_.block(column), gathered_.in(memory), sums_.in(memory)};
        sum_piece(run, blocks, piece);
        store(piece, dw);
      }
    }
  }

  void sum_piece(const Run& run, Range blocks, const Piece& piece) const {
    PixelBlock current;
    PixelBlock next;
    const auto find = [&](int64_t block, PixelBlock& found) {
      found.pixels = block < blocks.end ? pixels_.block(block) : Range{};
      window_.find(run.x, piece.tap, found.pixels, found.x.data());
    };
    find(blocks.begin, current);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      find(block + 1, next);
      if (!dense_) gather(current, piece);
      multiply(run, current, piece, next, block > blocks.begin);
      std::swap(current, next);
    }
  }

  static void gather(const PixelBlock& block, const Piece& piece) {
    const int64_t inputs = piece.inputs.size();
    for (int64_t i = 0; i < block.pixels.size(); ++i) {
      const float* row = block.x[static_cast<size_t>(i)];
      float* to = piece.gathered + i * inputs;
      row == nullptr ? std::fill_n(to, inputs, 0.0F) : std::copy_n(row + piece.inputs.begin, inputs, to);
    }
  }

  void multiply(const Run& run, const PixelBlock& block, const Piece& piece, const PixelBlock& next,
                bool accumulate) const {
    const int64_t inputs = piece.inputs.size();
    const int64_t outputs = piece.outputs.size();
    const float* x = dense_ ? block.x[0] + piece.inputs.begin : piece.gathered;
    const float* dy = run.dy + block.pixels.begin * outputs_.total + piece.outputs.begin;
    const int64_t steps = quotient_rounded_up(inputs, panel_) * quotient_rounded_up(outputs, kPanelRows);
    int64_t step = 0;
    for (int64_t column = 0; column < inputs; column += panel_) {
      for (int64_t output = 0; output < outputs; output += kPanelRows, ++step) {
        const int64_t count = next.pixels.size();
        fetch_rows(run, next, piece, {count * step / steps, count * (step + 1) / steps});
        multiply_panel({.a = dy + output,
                        .a_row = 1,
                        .a_depth = outputs_.total,
                        .b = x + column,
                        .b_row = dense_ ? inputs_ : inputs,
                        .c = piece.sums + column * outputs + output * panel_,
                        .c_row = panel_,
                        .rows = std::min(kPanelRows, outputs - output),
                        .depth = block.pixels.size(),
                        .width = std::min(panel_, inputs - column),
                        .accumulate = accumulate});
      }
    }
  }

  void fetch_rows(const Run& run, const PixelBlock& block, const Piece& piece, Range rows) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const float* x = block.x[static_cast<size_t>(i)];
      if (x != nullptr) fetch(x + piece.inputs.begin, piece.inputs.size());
      fetch(run.dy + (block.pixels.begin + i) * outputs_.total + piece.outputs.begin, piece.outputs.size());
    }
  }

  void store(const Piece& piece, float* dw) const {
    const int64_t outputs = piece.outputs.size();
    for (int64_t output = 0; output < outputs; ++output) {
      float* to = dw + (piece.outputs.begin + output) * row_ + piece.tap * inputs_ + piece.inputs.begin;
      for (int64_t column = 0; column < piece.inputs.size(); column += panel_) {
        std::copy_n(piece.sums + column * outputs + output * panel_,
                    std::min(panel_, piece.inputs.size() - column), to + column);
      }
    }
  }

  WindowRows window_;
  bool dense_;      // the rows under the tap are the rows of x
  int64_t inputs_;  // channels
  int64_t row_;     // of the weight: all taps of one output channel
  int64_t panel_;   // input channels that are multiplied at once
  Blocks pixels_;
  bool by_pixels_;
  Blocks outputs_;  // channels
  Blocks columns_;  // input channels
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> parts_;
  backend::WorkspaceArray<float> gathered_;
  backend::WorkspaceArray<float> sums_;
};

}  // namespace

KernelCandidate direct_weight_gradient_candidate() {
  return backend::candidate_of<DirectWeightGradient>(
      "loops.direct_weight_gradient",
      [](const KernelRequest& request) { return read_problem(request.node); });
}

}  // namespace tessera::cpu
