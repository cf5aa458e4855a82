// Products of whole numbers: exact, or refused by oneDNN and computed by loops of ours.
#include <algorithm>

#include <dnnl.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device_cpu/cpu_case.h"
#include "support/byte_convolutions.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

struct MatrixOfBytes {
  DataType a;
  DataType b;
  int64_t depth;
  bool taken;  // by oneDNN
  bool transpose_a = false;
  bool transpose_b = true;
};

// Sums as large as they get, where one that is rounded to fp32 differs, and sums of both signs.
Case make_case(const MatrixOfBytes& product, bool extreme) {
  const auto matrix = [&](DataType type, int64_t other, bool depth_first) {
    return fmt::format("{}[{}, {}]", to_string(type), depth_first ? product.depth : other,
                       depth_first ? other : product.depth);
  };
  Case own = text_case(
      fmt::format("graph product(input %a: {}, input %b: {}) {{ %y = matmul(%a, %b) {{transpose_a = {}, "
                  "transpose_b = {}}} output y = %y }}",
                  matrix(product.a, 5, product.transpose_a), matrix(product.b, 67, !product.transpose_b),
                  product.transpose_a, product.transpose_b),
      7, -200, 300);
  for (size_t i = 0; i < 2 && extreme; ++i) {
    const TypeTraits& traits = traits_of(own.inputs[i].data_type());
    for (int64_t e = 0; e < own.inputs[i].size(); ++e)
      own.inputs[i].set(e,
                        traits.lowest < 0 && i == 0 ? traits.lowest : traits.highest - (e % 7 == 0 ? 1 : 0));
  }
  return own;
}

bool has_instructions_for_sums() {
  constexpr auto kVnni = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_vnni);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kVnni) == kVnni;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(IntegerProducts, AreExactByEveryKernel) {
  constexpr DataType kSigned = DataType::int8;
  constexpr DataType kUnsigned = DataType::uint8;
  const MatrixOfBytes products[] = {
      {kUnsigned, kSigned, 64, true},
      {kUnsigned, kSigned, 5003, true},
      {kSigned, kSigned, 500, true},
      {kSigned, kSigned, 2000, false},
      {kUnsigned, kUnsigned, 3001, false},
      {kSigned, kUnsigned, 77, false},
      {kSigned, kUnsigned, 77, false, false, false},
      {kUnsigned, kUnsigned, 30, false, true, false},
      {kSigned, kUnsigned, 31, false, true, true},
  };
  for (const MatrixOfBytes& product : products) {
    for (const bool extreme : {false, true}) {
      const Case own = make_case(product, extreme);
      const std::vector<std::string> kernels =
          expect_every_kernel(*own.graph->nodes().back(), own.inputs, {Tolerance{}}, {false, true});
      EXPECT_TRUE(holds(kernels, "loops.bytes")) << print(*own.graph);
      EXPECT_EQ(holds(kernels, "onednn.matmul"), product.taken && has_instructions_for_sums())
          << print(*own.graph);
    }
  }
}

TEST(IntegerProducts, OfManyRightHandMatricesAreTheReferences) {
  const Case own = text_case(
      "graph products(input %a: int8[2, 5, 7], input %b: uint8[2, 7, 3]) { %y = matmul(%a, %b) output y = %y "
      "}",
      7, -200, 300);
  EXPECT_EQ(run_on_cpu(own).kernels[0], "reference");
}

// Of those of byte_convolutions().
bool onednn_takes(const ByteConvolution& convolution) {
  return has_instructions_for_sums() && !convolution.has_bias && convolution.weight_type == DataType::int8 &&
         convolution.name != "both_signed_deep";
}

TEST(IntegerConvolutions, AreExactByEveryKernel) {
  for (const ByteConvolution& convolution : byte_convolutions()) {
    for (const bool extreme : {false, true}) {
      const Case own = case_of(convolution, extreme);
      std::vector<bool> freezable(own.inputs.size(), false);
      freezable[1] = true;
      const std::vector<std::string> kernels =
          expect_every_kernel(*own.graph->nodes().back(), own.inputs, {Tolerance{}}, freezable);
      EXPECT_TRUE(holds(kernels, "loops.bytes")) << own.name;
      EXPECT_EQ(holds(kernels, "onednn.convolution"), onednn_takes(convolution)) << own.name;
      EXPECT_EQ(holds(kernels, "onednn.matmul_1x1"), onednn_takes(convolution) && own.name == "pointwise")
          << own.name;
      EXPECT_FALSE(holds(kernels, "onednn.convolution_blocked")) << own.name;
    }
  }
}

}  // namespace
}  // namespace tessera::testing
