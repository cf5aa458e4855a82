// The fault of oneDNN's convolutions on processors with AMX for which kernels refuse problems, in the library
// alone, as onednn_faults_test.cpp has those of weight gradients.
#include <cstdlib>
#include <functional>
#include <string>

#include <dnnl.hpp>
#include <gtest/gtest.h>
#include <omp.h>

#include "device_cpu/onednn_alone.h"

namespace tessera::testing {
namespace {

using dnnl::memory;

// Windows of 2 x 3 elements three apart, on images of one row with two rows of padding around: the elements
// lie above and below the image in every place.
struct WindowBesideTheImage {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  memory::desc x = channels_last_images({8, 16, 1, 11}, memory::data_type::bf16);
  memory::desc w{{16, 16, 2, 3}, memory::data_type::bf16, memory::format_tag::any};
  memory::desc y = channels_last_images({8, 16, 2, 9}, memory::data_type::bf16);
  memory::dims strides = memory::dims(2, 1);
  memory::dims dilations = memory::dims(2, 2);
  memory::dims padding = memory::dims(2, 2);
  dnnl::convolution_forward::primitive_desc forward{engine,
                                                    dnnl::prop_kind::forward_training,
                                                    dnnl::algorithm::convolution_direct,
                                                    x,
                                                    w,
                                                    y,
                                                    strides,
                                                    dilations,
                                                    padding,
                                                    padding,
                                                    dnnl::primitive_attr(),
                                                    /*allow_empty=*/true};

  dnnl::convolution_backward_data::primitive_desc data_gradient() const {
    return {engine,
            dnnl::algorithm::convolution_direct,
            x,
            w,
            y,
            strides,
            dilations,
            padding,
            padding,
            forward,
            dnnl::primitive_attr(),
            /*allow_empty=*/true};
  }
  memory empty(const memory::desc& descriptor) const { return {descriptor, engine}; }
};

void run_forward() {
  const WindowBesideTheImage own;
  dnnl::stream stream(own.engine);
  dnnl::convolution_forward(own.forward)
      .execute(stream, {{DNNL_ARG_SRC, own.empty(own.forward.src_desc())},
                        {DNNL_ARG_WEIGHTS, own.empty(own.forward.weights_desc())},
                        {DNNL_ARG_DST, own.empty(own.forward.dst_desc())}});
  stream.wait();
}

void run_data_gradient() {
  const WindowBesideTheImage own;
  dnnl::stream stream(own.engine);
  const auto gradient = own.data_gradient();
  dnnl::convolution_backward_data(gradient).execute(
      stream, {{DNNL_ARG_DIFF_DST, own.empty(gradient.diff_dst_desc())},
               {DNNL_ARG_WEIGHTS, own.empty(gradient.weights_desc())},
               {DNNL_ARG_DIFF_SRC, own.empty(gradient.diff_src_desc())}});
  stream.wait();
}

template <typename Descriptor>
bool runs_with_amx(const Descriptor& descriptor) {
  return descriptor && std::string(descriptor.impl_info_str()).find("amx") != std::string::npos;
}

void expect_end_of_program(bool has_the_code, const std::function<void()>& run) {
  // The fault is in the code for AMX: without it nothing is known of it.
  if (!has_the_code) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        run();
        std::exit(0);
      },
      [](int status) { return status != 0; }, "")
      << onednn_version()
      << " does not end the program. Where none of the tests in this file passes any more, "
      << "take refuse_beside_image() out of src/device/cpu/convolution/convolution_problem.cpp, and the file "
         "away.";
}

TEST(OnednnAmxFaults, ConvolutionsBesideTheImageEndTheProgram) {
  expect_end_of_program(runs_with_amx(WindowBesideTheImage().forward), run_forward);
}

TEST(OnednnAmxFaults, DataGradientsBesideTheImageEndTheProgram) {
  const WindowBesideTheImage own;
  expect_end_of_program(own.forward && runs_with_amx(own.data_gradient()), run_data_gradient);
}

}  // namespace
}  // namespace tessera::testing
