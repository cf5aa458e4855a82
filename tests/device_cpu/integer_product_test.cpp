// Products of whole numbers: exact, or refused by oneDNN and computed by the reference.
#include <gtest/gtest.h>

#include "device_cpu/cpu_case.h"

namespace tessera::testing {
namespace {

struct ByteProduct {
  DataType a;
  DataType b;
  int64_t depth;
  bool taken;  // by oneDNN
};

// Sums as large as they get, where one that is rounded to fp32 differs, and sums of both signs.
Case make_case(const ByteProduct& product, bool extreme) {
  Case own = text_case(
      "graph product(input %a: " + std::string(to_string(product.a)) + "[5, " +
          std::to_string(product.depth) + "], input %b: " + std::string(to_string(product.b)) + "[3, " +
          std::to_string(product.depth) + "]) { %y = matmul(%a, %b) {transpose_b = true} output y = %y }",
      7, -200, 300);
  for (size_t i = 0; i < 2 && extreme; ++i) {
    const TypeTraits& traits = traits_of(own.inputs[i].data_type());
    for (int64_t e = 0; e < own.inputs[i].size(); ++e)
      own.inputs[i].set(e,
                        traits.lowest < 0 && i == 0 ? traits.lowest : traits.highest - (e % 7 == 0 ? 1 : 0));
  }
  return own;
}

TEST(IntegerProducts, AreExact) {
  const ByteProduct products[] = {
      {DataType::uint8, DataType::int8, 64, true},     {DataType::uint8, DataType::int8, 5003, true},
      {DataType::int8, DataType::int8, 500, true},     {DataType::int8, DataType::int8, 2000, false},
      {DataType::uint8, DataType::uint8, 3001, false}, {DataType::int8, DataType::uint8, 77, false},
  };
  for (const ByteProduct& product : products) {
    for (const bool extreme : {false, true}) {
      const Case own = make_case(product, extreme);
      const DeviceRun run = run_on_cpu(own);
      const std::vector<Tensor> expected = run_reference(*own.graph, own.inputs).outputs;
      EXPECT_TRUE(run.outputs[0].identical(expected[0])) << print(*own.graph);
      if (!product.taken) {
        EXPECT_EQ(run.kernels[0], "reference") << print(*own.graph);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
