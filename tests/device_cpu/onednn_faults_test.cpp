// The faults of oneDNN's weight gradients for which kernels refuse problems, in the library alone. A test
// that fails says that the installed version has the fault no more; what to do stands with it. Where the
// processor lacks the instructions of the code at fault oneDNN runs other code, which tells nothing of it:
// skipped.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <dnnl.hpp>
#include <gtest/gtest.h>
#include <omp.h>

#include "device_cpu/onednn_alone.h"
#include "support/guarded_memory.h"

namespace tessera::testing {
namespace {

using dnnl::memory;

// A weight gradient of one image on channels-last activations, square window and padding that keeps the
// image's extents but for the stride.
struct WeightGradient {
  int64_t channels;
  int64_t outputs;
  int64_t height;
  int64_t width;
  int64_t window;
  int64_t stride;
  int64_t dilation;
  memory::data_type type;
  int threads;
};

struct Findings {
  std::string implementation;
  std::string damage;         // beyond the scratchpad
  std::vector<float> weight;  // the gradient
};

// Of weight gradients in bf16 beside those in fp32.
struct InBrainFloat {
  bool has_the_code = false;
  int64_t wrong = 0;
};

// The code in which the fault is, by the name that the library gives it; on processors that run other code,
// nothing can be said.
bool is_faulty_code(const Findings& findings, std::string_view name) {
  return findings.implementation.find(name) != std::string::npos;
}

bool has_avx512() {
  constexpr auto kCore = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kCore) == kCore;
}

class OnednnFaults : public ::testing::Test {
 protected:
  void TearDown() override { omp_set_num_threads(threads_); }

  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};

  // Every element of x and dy is a whole number of eighths, which bf16 holds. Nothing where oneDNN has no
  // such primitive on this machine.
  Findings run(const WeightGradient& own) {
    omp_set_num_threads(own.threads);
    const int64_t padding = own.dilation * (own.window - 1) / 2;
    const auto count = [&](int64_t extent) { return (extent - 1) / own.stride + 1; };
    const memory::dims x_dims{1, own.channels, own.height, own.width};
    const memory::dims y_dims{1, own.outputs, count(own.height), count(own.width)};
    const memory::dims w_dims{own.outputs, own.channels, own.window, own.window};
    const memory::desc x = channels_last_images(x_dims, own.type);
    const memory::desc y = channels_last_images(y_dims, own.type);
    const memory::desc w(w_dims, own.type, memory::format_tag::any);
    const memory::dims strides(2, own.stride);
    const memory::dims dilations(2, own.dilation - 1);
    const memory::dims paddings(2, padding);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(engine_, dnnl::prop_kind::forward_training,
                                                            kDirect, x, w, y, strides, dilations, paddings,
                                                            paddings, attributes, /*allow_empty=*/true);
    if (!forward) return {};
    const dnnl::convolution_backward_weights::primitive_desc gradient(
        engine_, kDirect, x, w, y, strides, dilations, paddings, paddings, forward, attributes,
        /*allow_empty=*/true);
    if (!gradient) return {};
    const std::shared_ptr<Device> device = Device::reference();
    const memory::desc scratch = gradient.scratchpad_desc();
    const GuardedMemory scratchpad(*device, static_cast<int64_t>(scratch.get_size()), kNaNPoison);
    memory dw(gradient.diff_weights_desc(), engine_);
    std::memset(dw.get_data_handle(), kNaNPoison, dw.get_desc().get_size());
    dnnl::convolution_backward_weights(gradient).execute(
        stream_, {{DNNL_ARG_SRC, eighths(x)},
                  {DNNL_ARG_DIFF_DST, eighths(y)},
                  {DNNL_ARG_DIFF_WEIGHTS, dw},
                  {DNNL_ARG_SCRATCHPAD, memory(scratch, engine_, scratchpad.get())}});
    stream_.wait();
    return {gradient.impl_info_str(), scratchpad.damage(),
            values_in(dw, row_major(w_dims, memory::data_type::f32), stream_)};
  }

  // Sums of so few eighths of eighths are exact in fp32. What is rounded is the result, by 2^-8 of it in
  // bf16: a hundredth is more.
  void compare_in_brain_float(WeightGradient own, InBrainFloat& found) {
    const Findings narrow = run(own);
    own.type = memory::data_type::f32;
    const Findings wide = run(own);
    found.has_the_code |= is_faulty_code(narrow, "jit_bf16");
    for (size_t i = 0; i < narrow.weight.size(); ++i) {
      const float difference = std::abs(narrow.weight[i] - wide.weight[i]);
      found.wrong += difference <= 0.01F * std::abs(wide.weight[i]) + 0.01F ? 0 : 1;
    }
  }

 private:
  memory eighths(const memory::desc& descriptor) {
    const memory::desc wide = channels_last_images(descriptor.get_dims(), memory::data_type::f32);
    std::vector<float> values(wide.get_size() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) values[i] = eighth(static_cast<int64_t>(i));
    return memory_of(values, wide, descriptor, stream_);
  }

  const int threads_ = omp_get_max_threads();
};

// How many numbers of a weight gradient over windows of one element are wrong; by a hundredth, as above.
int64_t wrong_numbers(const WeightGradient& own, const std::vector<float>& weight) {
  int64_t wrong = 0;
  const int64_t rows = (own.height - 1) / own.stride + 1;
  const int64_t columns = (own.width - 1) / own.stride + 1;
  for (size_t i = 0; i < weight.size(); ++i) {
    const int64_t k = static_cast<int64_t>(i) / own.channels;
    const int64_t c = static_cast<int64_t>(i) % own.channels;
    float sum = 0;  // exact: few sums of eighths of eighths
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        sum += eighth((row * columns + column) * own.outputs + k) *
               eighth((row * own.width + column) * own.stride * own.channels + c);
    }
    wrong += std::abs(weight[i] - sum) <= 0.01F * std::abs(sum) + 0.01F ? 0 : 1;
  }
  return wrong;
}

// Without AVX-512, barriers may lie where it writes, at which threads then wait for ever: one alone does not
// wait.
TEST_F(OnednnFaults, StridedWeightGradientsOfFewChannelsLeaveTheScratchpad) {
  bool has_the_code = false;
  std::string damage;
  int64_t wrong = 0;
  for (const int threads : has_avx512() ? std::vector{2, 8} : std::vector{1}) {
    for (const memory::data_type type : {memory::data_type::f32, memory::data_type::bf16}) {
      for (const int64_t channels : {3, 7, 8, 15}) {
        const WeightGradient own{channels, 8, 20, 20, 1, 2, 1, type, threads};
        const Findings found = run(own);
        has_the_code |= is_faulty_code(found, "1x1:avx");
        damage += found.damage;
        wrong += wrong_numbers(own, found.weight);
      }
    }
  }
  if (!has_the_code) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  EXPECT_TRUE(wrong > 0 || !damage.empty())
      << onednn_version()
      << " stays inside its scratchpad and computes rightly. Where the test device_cpu.held_to_avx2 says the "
         "same, "
         "take the refusal of strides over windows of one element out of refuse_faulty() in "
         "src/device/cpu/onednn/onednn_convolution_gradient.cpp, and this test away.";
}

TEST_F(OnednnFaults, DilatedWeightGradientsInBrainFloatSumWhatIsNotWritten) {
  InBrainFloat found;
  for (const int64_t channels : {17, 24, 40}) {
    for (const int64_t dilation : {2, 3})
      compare_in_brain_float({channels, 16, 9, 32, 3, 1, dilation, memory::data_type::bf16, 2}, found);
  }
  if (!found.has_the_code) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  EXPECT_GT(found.wrong, 0)
      << onednn_version()
      << " computes them rightly. Take the refusal of dilated windows in bf16 out of "
         "refuse_faulty() in src/device/cpu/onednn/onednn_convolution_gradient.cpp, and this test away.";
}

TEST_F(OnednnFaults, StridesBeyondTheImageInBrainFloatSumWhatIsNotWritten) {
  InBrainFloat found;
  for (const int threads : {1, 2, 8}) {
    for (const int64_t channels : {3, 7, 32})
      compare_in_brain_float({channels, 8, 1, 2, 3, 3, 1, memory::data_type::bf16, threads}, found);
  }
  if (!found.has_the_code) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  EXPECT_GT(found.wrong, 0)
      << onednn_version()
      << " computes them rightly. Take the refusal of strides beyond the image out of weight_request() in "
         "src/device/cpu/onednn/onednn_convolution_gradient.cpp, and this test away.";
}

}  // namespace
}  // namespace tessera::testing
