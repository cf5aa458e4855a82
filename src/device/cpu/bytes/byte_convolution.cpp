#include "device/cpu/bytes/byte_convolution.h"

#include <array>

#include "device/cpu/bytes/byte_kernel.h"
#include "device/cpu/convolution/window_rows.h"
#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

struct ByteConvolutionRequest {
  ConvolutionProblem problem;
  DataType source = DataType::int8;
  ByteProblem bytes;
};

// The windows of the image are the rows, the weight's filters the columns.
ByteConvolutionRequest read_request(const KernelRequest& request) {
  const Node& node = request.node;
  refuse_unless(node.output()->data_type() == DataType::int32, "not bytes");
  const Shape weight = node.input(1)->type().static_shape();
  ByteConvolutionRequest result{
      .problem = problem_of(node), .source = node.input(0)->data_type(), .bytes = {}};
  const int64_t depth = element_count(weight) / weight[0];
  const int64_t groups = result.problem.groups;
  result.bytes = {.product = {.depth = depth, .columns = weight[0] / groups},
                  .groups = groups,
                  .rows = result.problem.pixels(),
                  .right = {.type = node.input(1)->data_type(), .stride = depth},
                  .frozen = is_frozen_input(request, 1),
                  .has_bias = node.inputs().size() > 2};
  return result;
}

class ByteConvolution : public ByteKernel {
 public:
  explicit ByteConvolution(const ByteConvolutionRequest& request)
      : ByteKernel(request.bytes),
        source_(request.source),
        window_(request.problem),
        inputs_(request.problem.input_channels() / request.problem.groups) {}

 private:
  void widen_rows(const void* left, int64_t group, Range rows, int16_t* widened) const override {
    if (source_ == DataType::int8) {
      widen_windows(static_cast<const int8_t*>(left), group, rows, widened);
    } else {
      widen_windows(static_cast<const uint8_t*>(left), group, rows, widened);
    }
  }

  template <typename T>
  void widen_windows(const T* x, int64_t group, Range pixels, int16_t* widened) const {
    std::array<const T*, kMostRows> found;
    for (int64_t tap = 0; tap < window_.taps(); ++tap) {
      window_.find(x, tap, pixels, found.data());
      for (int64_t i = 0; i < pixels.size(); ++i) {
        const T* from = found[static_cast<size_t>(i)];
        int16_t* to = widened + i * product().row() + tap * inputs_;
        if (from == nullptr) {
          std::fill_n(to, inputs_, int16_t{0});
        } else {
          std::copy_n(from + group * inputs_, inputs_, to);
        }
      }
    }
  }

  DataType source_;
  WindowRows window_;
  int64_t inputs_;  // channels of a group
};

}  // namespace

KernelCandidate byte_convolution_candidate() {
  return backend::candidate_of<ByteConvolution>("loops.bytes", read_request);
}

}  // namespace tessera::cpu
