// The weight gradient: F(3x3, 4x4), whose filters are squares of the result's gradient, summed over all
// squares before they are turned back.
#include "device/cpu/kernel_registry.h"
#include "device/cpu/panel_product.h"
#include "device/cpu/parallel.h"
#include "device/cpu/winograd.h"
#include "device/cpu/winograd_problem.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLargestBlock = 96;  // squares
constexpr int64_t kLeastSquares = 64;
constexpr int64_t kLargestSums = int64_t{12} << 20;  // bytes of sums that each thread may have for itself

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

class WinogradWeightGradient : public Kernel {
 public:
  explicit WinogradWeightGradient(const ConvolutionProblem& problem)
      : input_(winograd_images(problem.source, problem.padding_low, problem.destination)),
        gradient_(winograd_images(problem.destination, {0, 0}, problem.destination)) {
    const int64_t squares = count_squares(problem.destination);
    row_ = round_up(input_.channels, vector_width());
    sums_matrix_ = matrix_stride(gradient_.channels, row_);
    sums_elements_ = kWinogradPlaces * sums_matrix_;
    blocks_ = cut_into_blocks(squares, kLargestBlock);
    // Either each thread sums its own squares for all channels, or all squares for its own channels.
    if (sums_elements_ * static_cast<int64_t>(sizeof(float)) > kLargestSums) {
      channel_parts_ = std::min(blocks_.parts, gradient_.channels / kPanelRows);
      blocks_.parts = 1;
    }
    input_matrix_ = matrix_stride(blocks_.size, row_);
    gradient_matrix_ = matrix_stride(blocks_.size, gradient_.channels);
    thread_elements_ = kWinogradPlaces * (input_matrix_ + gradient_matrix_);
  }

  int64_t workspace_bytes() const override {
    return (blocks_.parts * sums_elements_ + blocks_.parts * channel_parts_ * thread_elements_) *
           static_cast<int64_t>(sizeof(float));
  }

  void run(const KernelArguments& arguments) override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    const auto* dy = static_cast<const float*>(arguments.inputs[1]);
    auto* sums = static_cast<float*>(arguments.workspace);
    float* threads = sums + blocks_.parts * sums_elements_;
    for_each_part(
        blocks_.parts * channel_parts_, blocks_.parts * channel_parts_, [&](int64_t part, int64_t, int64_t) {
          const int64_t squares = part / channel_parts_;
          const int64_t channels = part % channel_parts_;
          const Range own{gradient_.channels * channels / channel_parts_,
                          gradient_.channels * (channels + 1) / channel_parts_};
          sum_blocks(squares, own, x, dy, threads + part * thread_elements_, sums + squares * sums_elements_);
        });
    for_each_part(part_count(sums_elements_), gradient_.channels, [&](int64_t, int64_t begin, int64_t end) {
      winograd_weight({sums, sums_matrix_, row_}, blocks_.parts, sums_elements_, {begin, end},
                      input_.channels, static_cast<float*>(arguments.outputs[0]));
    });
  }

 private:
  // sums[place][k, c] = sum over the blocks of this part of gradient[square, k] * input[square, c]
  void sum_blocks(int64_t part, Range channels, const float* x, const float* dy, float* memory,
                  float* sums) const {
    const WinogradMatrices<float> inputs{memory, input_matrix_, row_};
    const WinogradMatrices<float> gradients{memory + kWinogradPlaces * input_matrix_, gradient_matrix_,
                                            gradient_.channels};
    const int64_t first = blocks_.count() * part / blocks_.parts;
    const int64_t last = blocks_.count() * (part + 1) / blocks_.parts;
    for (int64_t block = first; block < last; ++block) {
      const Range squares = blocks_.block(block);
      winograd_input(input_, x, squares, inputs);
      winograd_gradient(gradient_, dy, squares, channels, gradients);
      for (int64_t place = 0; place < kWinogradPlaces; ++place) {
        for (int64_t column = 0; column < row_; column += panel_width()) {
          multiply_panel({.a = gradients.data + place * gradient_matrix_,
                          .a_row = 1,
                          .a_depth = gradients.row_stride,
                          .b = inputs.data + place * input_matrix_ + column,
                          .b_row = row_,
                          .c = sums + place * sums_matrix_ + channels.begin * row_ + column,
                          .c_row = row_,
                          .rows = channels.size(),
                          .depth = squares.size(),
                          .width = std::min(panel_width(), row_ - column),
                          .accumulate = block > first});
        }
      }
    }
  }

  WinogradImages input_;
  WinogradImages gradient_;
  WinogradBlocks blocks_;
  int64_t channel_parts_ = 1;
  int64_t row_ = 0;  // input channels, rounded up to vectors
  int64_t sums_matrix_ = 0;
  int64_t sums_elements_ = 0;
  int64_t input_matrix_ = 0;
  int64_t gradient_matrix_ = 0;
  int64_t thread_elements_ = 0;
};

}  // namespace

KernelCandidate winograd_weight_gradient_candidate() {
  return checked_candidate(
      "loops.winograd", [](const KernelRequest& request) { read_problem(request.node); },
      [](const KernelRequest& request) {
        return std::make_unique<WinogradWeightGradient>(read_problem(request.node));
      });
}

}  // namespace tessera::cpu
