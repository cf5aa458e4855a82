// The weight gradient: F(3x3, 4x4), whose filters are squares of the result's gradient, summed over all
// squares before they are transposed back.
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"
#include "device/cpu/winograd/winograd.h"
#include "device/cpu/winograd/winograd_problem.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLeastSquares = 64;
constexpr int64_t kLargestBlock = 96;               // squares
constexpr int64_t kLargestChannels = 48;            // of a block, where channels are shared
constexpr int64_t kLargestSums = int64_t{1} << 20;  // floats that each thread may have for itself
constexpr int64_t kLargestInput = int64_t{5}
                                  << 20;  // floats transformed at a time, where channels are shared

ConvolutionProblem read_problem(const Node& node) {
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  ConvolutionProblem problem = make_convolution_problem(shape(node.input(0)), shape(node.output()),
                                                        shape(node.input(1)), node.attributes());
  refuse_unless_winograd(problem, node.input(0)->data_type());
  refuse_few_squares(problem.destination, kLeastSquares);
  refuse_unless(node.output()->data_type() == DataType::fp32, "the result is {}",
                to_string(node.output()->data_type()));
  return problem;
}

// Two ways to share the work. By squares, while the sums are small: each thread sums its own squares for all
// channels. By channels: all squares are transformed first, as many at a time as memory allows, and each
// thread sums them for its own channels of the gradient.
class WinogradWeightGradient : public Kernel {
 public:
  explicit WinogradWeightGradient(const ConvolutionProblem& problem)
      : input_(winograd_images(problem.source, problem.padding_low, problem.destination)),
        gradient_(winograd_images(problem.destination, {0, 0}, problem.destination)),
        row_(round_up(input_.channels, vector_width())),
        panel_(std::min(panel_width(), row_)),
        squares_(cut_into_blocks(count_squares(problem.destination), kLargestBlock)),
        channels_(cut_into_blocks(gradient_.channels, kLargestChannels)),
        by_channels_(kWinogradPlaces * gradient_.channels * row_ > kLargestSums) {
    const int64_t fitting = kLargestInput / (kWinogradPlaces * row_);
    rounds_ =
        cut_into_panels(squares_.total, by_channels_ ? std::min(squares_.total, fitting) : squares_.size);
    sums_matrix_ = matrix_stride(gradient_.channels, row_);
    input_matrix_ = matrix_stride(rounds_.size, panel_);
    input_panel_ = kWinogradPlaces * input_matrix_;
    gradient_row_ = by_channels_ ? channels_.size : gradient_.channels;
    gradient_matrix_ = matrix_stride(rounds_.size, gradient_row_);
    backend::WorkspaceLayout& common = by_channels_ ? workspace_.shared : workspace_.own;
    sums_ = common.book<float>(kWinogradPlaces * sums_matrix_);
    inputs_ = common.book<float>(quotient_rounded_up(row_, panel_) * input_panel_);
    gradients_ = workspace_.own.book<float>(kWinogradPlaces * gradient_matrix_);
  }

  int64_t workspace_bytes() const override {
    return workspace_.bytes((by_channels_ ? channels_ : squares_).parts);
  }

  void run(const KernelArguments& arguments) override {
    const Run run{.x = static_cast<const float*>(arguments.inputs[0]),
                  .dy = static_cast<const float*>(arguments.inputs[1]),
                  .workspace = arguments.workspace};
    by_channels_ ? sum_by_channels(run) : sum_by_squares(run);
    const int64_t parts = by_channels_ ? 1 : squares_.parts;
    const float* sums = sums_.in(by_channels_ ? run.workspace : workspace_.own_of(run.workspace, 0));
    const int64_t part_stride = workspace_.own.bytes() / static_cast<int64_t>(sizeof(float));
    for_each_part(channels_.parts, gradient_.channels, [&](int64_t, int64_t begin, int64_t end) {
      winograd_weight({sums, sums_matrix_, row_}, parts, part_stride, {begin, end}, input_.channels,
                      static_cast<float*>(arguments.outputs[0]));
    });
  }

 private:
  struct Run {
    const float* x;
    const float* dy;
    void* workspace;
  };

  void sum_by_squares(const Run& run) const {
    for_each_part(squares_.parts, squares_.count(), [&](int64_t part, int64_t begin, int64_t end) {
      void* memory = workspace_.own_of(run.workspace, part);
      for (int64_t block = begin; block < end; ++block) {
        const Range squares = squares_.block(block);
        transform_input(run, squares, inputs_.in(memory));
        multiply(run, squares, {0, gradient_.channels}, inputs_.in(memory), gradients_.in(memory),
                 sums_.in(memory), block > begin);
      }
    });
  }

  void sum_by_channels(const Run& run) const {
    float* inputs = inputs_.in(run.workspace);
    for (int64_t round = 0; round < rounds_.count(); ++round) {
      const Range squares = rounds_.block(round);
      for_each_part(squares_.parts, squares.size(), [&](int64_t, int64_t begin, int64_t end) {
        transform_input(run, {squares.begin + begin, squares.begin + end}, inputs + begin * panel_);
      });
      for_each_part(channels_.parts, channels_.count(), [&](int64_t part, int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const Range channels = channels_.block(block);
          multiply(run, squares, channels, inputs, gradients_.in(workspace_.own_of(run.workspace, part)),
                   sums_.in(run.workspace) + channels.begin * row_, round > 0);
        }
      });
    }
  }

  void transform_input(const Run& run, Range squares, float* inputs) const {
    for (int64_t first = 0; first < input_.channels; first += panel_) {
      winograd_input(input_, run.x, squares, {first, std::min(first + panel_, input_.channels)},
                     {inputs + first / panel_ * input_panel_, input_matrix_, panel_});
    }
  }

  // sums[place][k, c] (+)= sum over the squares of gradient[square, k] * input[square, c]
  void multiply(const Run& run, Range squares, Range channels, const float* inputs, float* gradients,
                float* sums, bool accumulate) const {
    winograd_gradient(gradient_, run.dy, squares, channels, {gradients, gradient_matrix_, gradient_row_});
    for (int64_t place = 0; place < kWinogradPlaces; ++place) {
      for (int64_t column = 0; column < row_; column += panel_) {
        multiply_panel({.a = gradients + place * gradient_matrix_,
                        .a_row = 1,
                        .a_depth = gradient_row_,
                        .b = inputs + column / panel_ * input_panel_ + place * input_matrix_,
                        .b_row = panel_,
                        .c = sums + place * sums_matrix_ + column,
                        .c_row = row_,
                        .rows = channels.size(),
                        .depth = squares.size(),
                        .width = std::min(panel_, row_ - column),
                        .accumulate = accumulate});
      }
    }
  }

  WinogradImages input_;
  WinogradImages gradient_;
  int64_t row_;    // input channels, rounded up to vectors
  int64_t panel_;  // of them, that lie side by side in the transformed input
  Blocks squares_;
  Blocks channels_;  // of the gradient
  bool by_channels_;
  Blocks rounds_;  // squares that are transformed before they are multiplied
  int64_t gradient_row_ = 0;
  int64_t sums_matrix_ = 0;
  int64_t input_matrix_ = 0;
  int64_t input_panel_ = 0;
  int64_t gradient_matrix_ = 0;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> sums_;
  backend::WorkspaceArray<float> inputs_;
  backend::WorkspaceArray<float> gradients_;
};

}  // namespace

KernelCandidate winograd_weight_gradient_candidate() {
  return winograd_candidate([](const KernelRequest& request) -> KernelMaker {
    return
        [problem = read_problem(request.node)] { return std::make_unique<WinogradWeightGradient>(problem); };
  });
}

}  // namespace tessera::cpu
