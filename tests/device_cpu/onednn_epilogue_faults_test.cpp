// The faults of oneDNN in what follows a product, and in products of whole numbers, in the library alone. A
// test that fails says that the installed version has the fault no more; what to do stands with it. Where the
// processor lacks the instructions of the code at fault oneDNN runs other code, which tells nothing of it:
// skipped.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>
#include <gtest/gtest.h>

#include "device_cpu/onednn_alone.h"

namespace tessera::testing {
namespace {

using dnnl::algorithm;
using dnnl::memory;

struct Outcome {
  std::string implementation;  // empty where oneDNN has no such primitive on this machine
  int64_t wrong = 0;
  bool channels_last = true;  // the result is
};

class OnednnEpilogueFaults : public ::testing::Test {
 protected:
  // Of NaN in every element of x and ones in w: how many results are numbers after the activation.
  template <typename Descriptor>
  Outcome numbers_of_nan(const Descriptor& product, const memory::dims& x, const memory::dims& w) {
    if (!product) return {};
    const auto filled = [&](const memory::dims& dims, float value, const memory::desc& wanted) {
      const memory::desc stored = row_major(dims, memory::data_type::f32);
      return memory_of(std::vector<float>(stored.get_size() / sizeof(float), value), stored, wanted, stream_);
    };
    const memory::desc result = product.dst_desc();
    memory y(result, engine_);
    typename Descriptor::primitive(product).execute(
        stream_, {{DNNL_ARG_SRC, filled(x, std::numeric_limits<float>::quiet_NaN(), product.src_desc())},
                  {DNNL_ARG_WEIGHTS, filled(w, 1, product.weights_desc())},
                  {DNNL_ARG_DST, y}});
    stream_.wait();
    const std::vector<float> values =
        values_in(y, row_major(result.get_dims(), memory::data_type::f32), stream_);
    return {product.impl_info_str(),
            std::count_if(values.begin(), values.end(), [](float value) { return !std::isnan(value); })};
  }

  Outcome after_matmul(algorithm activation, memory::data_type type, float alpha = 0, float beta = 0) {
    const memory::dims x{3, 8}, w{8, 40}, y{3, 40};
    return numbers_of_nan(
        Alone<dnnl::matmul>(engine_, row_major(x, type), row_major(w, type), row_major(y, type),
                            followed_by(activation, alpha, beta), /*allow_empty=*/true),
        x, w);
  }

  Outcome after_convolution(algorithm activation, memory::data_type type, int64_t groups) {
    const memory::dims x{1, 16, 6, 6}, w{groups, 16 / groups, 16 / groups, 3, 3};
    const memory::dims ones{1, 1}, zeros{0, 0};
    return numbers_of_nan(
        Alone<dnnl::convolution_forward>(
            engine_, dnnl::prop_kind::forward_training, algorithm::convolution_direct,
            channels_last_images(x, type), memory::desc(w, type, memory::format_tag::any),
            channels_last_images(x, type), ones, zeros, ones, ones, followed_by(activation, 0, 0),
            /*allow_empty=*/true),
        x, w);
  }

  // A convolution of zeros to `outputs` channels whose activations lie as oneDNN likes, and a residual
  // channels last: how many numbers of the result are not the residual's.
  Outcome with_residual(memory::data_type type, int64_t outputs) {
    const memory::dims x{1, 16, 6, 6}, w{outputs, 16, 3, 3}, y{1, outputs, 6, 6};
    const memory::dims ones{1, 1}, zeros{0, 0};
    const auto any = [&](const memory::dims& dims) {
      return memory::desc(dims, type, memory::format_tag::any);
    };
    const memory::desc residual = channels_last_images(y, type);
    dnnl::post_ops operations;
    operations.append_binary(algorithm::binary_add, residual);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(operations);
    const dnnl::convolution_forward::primitive_desc product(
        engine_, dnnl::prop_kind::forward_training, algorithm::convolution_direct, any(x), any(w), any(y),
        ones, zeros, ones, ones, attributes, /*allow_empty=*/true);
    if (!product) return {};
    const memory::desc stored = channels_last_images(y, memory::data_type::f32);
    std::vector<float> expected(stored.get_size() / sizeof(float));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = eighth(static_cast<int64_t>(i));
    const auto zero = [&](const memory::desc& wanted) {
      const memory::desc plain = row_major(wanted.get_dims(), memory::data_type::f32);
      return memory_of(std::vector<float>(plain.get_size() / sizeof(float)), plain, wanted, stream_);
    };
    memory result(product.dst_desc(), engine_);
    dnnl::convolution_forward(product).execute(stream_, {{DNNL_ARG_SRC, zero(product.src_desc())},
                                                         {DNNL_ARG_WEIGHTS, zero(product.weights_desc())},
                                                         {DNNL_ARG_DST, result},
                                                         {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                                                          memory_of(expected, stored, residual, stream_)}});
    stream_.wait();
    const std::vector<float> actual = values_in(result, stored, stream_);
    int64_t wrong = 0;
    for (size_t i = 0; i < expected.size(); ++i) wrong += actual[i] != expected[i] ? 1 : 0;
    return {product.impl_info_str(), wrong, product.dst_desc() == residual};
  }

  // One row of `first` times 32 columns of numbers near 127, plus a bias beyond 2^24 where there shall be
  // one: how many sums are not exact.
  Outcome of_whole_numbers(memory::data_type first_type, int64_t depth, bool with_bias) {
    constexpr int64_t kColumns = 32;
    const memory::desc x = row_major({1, depth}, first_type);
    const memory::desc w = row_major({depth, kColumns}, memory::data_type::s8);
    const memory::desc y = row_major({1, kColumns}, memory::data_type::s32);
    const memory::desc b = with_bias ? y : memory::desc();
    const dnnl::matmul::primitive_desc product(engine_, x, w, b, y, dnnl::primitive_attr(),
                                               /*allow_empty=*/true);
    if (!product) return {};
    constexpr int32_t kFirst = 127;
    std::vector<uint8_t> left(static_cast<size_t>(depth), kFirst);
    std::vector<int8_t> right(static_cast<size_t>(depth * kColumns));
    std::vector<int32_t> exact(kColumns), bias(kColumns), actual(kColumns);
    for (int64_t j = 0; j < kColumns && with_bias; ++j)
      bias[static_cast<size_t>(j)] = (1 << 24) + 1 + 2 * static_cast<int32_t>(j);
    exact = bias;
    for (int64_t i = 0; i < depth * kColumns; ++i) {
      const int8_t value = i % 7 == 0 ? 126 : 127;
      right[static_cast<size_t>(i)] = value;
      exact[static_cast<size_t>(i % kColumns)] += kFirst * value;
    }
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(x, engine_, left.data())},
                                              {DNNL_ARG_WEIGHTS, memory(w, engine_, right.data())},
                                              {DNNL_ARG_DST, memory(y, engine_, actual.data())}};
    if (with_bias) arguments[DNNL_ARG_BIAS] = memory(b, engine_, bias.data());
    dnnl::matmul(product).execute(stream_, arguments);
    stream_.wait();
    int64_t wrong = 0;
    for (size_t j = 0; j < exact.size(); ++j) wrong += actual[j] != exact[j] ? 1 : 0;
    return {product.impl_info_str(), wrong};
  }

  static bool runs(const Outcome& outcome, std::string_view code) {
    return outcome.implementation.find(code) != std::string::npos;
  }

 private:
  // The description of a primitive, which names its class.
  template <typename Primitive>
  struct Alone : Primitive::primitive_desc {
    using primitive = Primitive;
    using Primitive::primitive_desc::primitive_desc;
  };

  static dnnl::primitive_attr followed_by(algorithm activation, float alpha, float beta) {
    dnnl::post_ops operations;
    operations.append_eltwise(activation, alpha, beta);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(operations);
    return attributes;
  }

  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

TEST_F(OnednnEpilogueFaults, ReluClipAndHardSigmoidMakeNumbersOfNaN) {
  constexpr auto kType = memory::data_type::f32;
  for (const auto& [name, outcome] :
       {std::pair{"relu", after_matmul(algorithm::eltwise_relu, kType)},
        {"clip", after_matmul(algorithm::eltwise_clip, kType, 0, 6)},
        {"hard_sigmoid", after_matmul(algorithm::eltwise_hardsigmoid, kType, 1.0F / 6, 0.5F)}}) {
    EXPECT_GT(outcome.wrong, 0)
        << onednn_version() << " keeps NaN in its " << name
        << ". Where the test device_cpu.held_to_avx2 says the same, take it as it is in "
           "activation_of() of src/device/cpu/onednn/post_operations.cpp, and out here.";
  }
}

// This machine runs that code where ONEDNN_MAX_CPU_ISA=AVX2, as the test device_cpu.held_to_avx2 sets it.
TEST_F(OnednnEpilogueFaults, SigmoidAfterGroupsMakesNumbersOfNaNWithoutAvx512) {
  const Outcome outcome = after_convolution(algorithm::eltwise_logistic, memory::data_type::f32, 4);
  if (!runs(outcome, "gemm:jit")) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  EXPECT_GT(outcome.wrong, 0)
      << onednn_version()
      << " keeps NaN. Take the refusal of sigmoid after groups out of append_post_operations() in "
         "src/device/cpu/onednn/post_operations.cpp, and this test away.";
}

TEST_F(OnednnEpilogueFaults, SigmoidInFp16MakesNumbersOfNaN) {
  std::vector<Outcome> outcomes{after_matmul(algorithm::eltwise_logistic, memory::data_type::f16)};
  for (const int64_t groups : {1, 4})
    outcomes.push_back(after_convolution(algorithm::eltwise_logistic, memory::data_type::f16, groups));
  int64_t wrong = 0;
  bool has_the_code = false;
  for (const Outcome& outcome : outcomes) {
    wrong += outcome.wrong;
    has_the_code |= runs(outcome, "fp16");
  }
  if (!has_the_code) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  // The same code keeps NaN on some processors: only another version can be said to be right.
  if (wrong == 0 && onednn_version().starts_with("oneDNN 3.2."))
    GTEST_SKIP() << onednn_version() << " keeps NaN on this processor, and not on others";
  EXPECT_GT(wrong, 0) << onednn_version()
                      << " keeps NaN. Take the refusal of sigmoid in fp16 out of activation_of() in "
                         "src/device/cpu/onednn/post_operations.cpp, and this test away.";
}

TEST_F(OnednnEpilogueFaults, ResidualsBesideBlockedActivationsAreReadAsTheResultLies) {
  int64_t wrong = 0;
  bool lies_otherwise = false;
  for (const memory::data_type type : {memory::data_type::f32, memory::data_type::bf16}) {
    for (const int64_t outputs : {7, 16, 32}) {
      const Outcome outcome = with_residual(type, outputs);
      wrong += outcome.wrong;
      lies_otherwise |= !outcome.channels_last;
    }
  }
  if (!lies_otherwise) GTEST_SKIP() << onednn_version() << " likes channels last on this processor";
  EXPECT_GT(wrong, 0) << onednn_version()
                      << " reads them where they lie. Take the refusal of a residual out of plan_direct() in "
                         "src/device/cpu/onednn/onednn_convolution.cpp, and this test away.";
}

TEST_F(OnednnEpilogueFaults, ProductsOfWholeNumbersAreRoundedToFp32) {
  const Outcome of_signed = of_whole_numbers(memory::data_type::s8, 5000, false);
  const Outcome with_bias = of_whole_numbers(memory::data_type::u8, 64, true);
  if (!runs(of_signed, "vnni")) GTEST_SKIP() << onednn_version() << " runs other code on this processor";
  EXPECT_GT(of_signed.wrong, 0)
      << onednn_version()
      << " sums two signed factors exactly. Take the refusal beyond 2^24 out of check_exact() in "
         "src/device/cpu/onednn/onednn_matmul.cpp, and this line away.";
  EXPECT_GT(with_bias.wrong, 0) << onednn_version()
                                << " adds a bias to whole numbers exactly. Let contraction_pattern() of "
                                   "src/device/common fuse it for the "
                                   "processor, and take this line away.";
}

}  // namespace
}  // namespace tessera::testing
