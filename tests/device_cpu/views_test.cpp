// Parts of values that kernels of the CPU would write over.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/graph/graph.h"

#include "support/random_tensor.h"

namespace tessera {
namespace {

// The difference may not take the square's place: its first element is read for all others.
TEST(CpuViews, WhatIsReadInPartIsNotOverwritten) {
  const auto graph = parse_graph(R"(graph views(
      input %x: fp32[100000]) {
      %square: fp32[100000] = square(%x)
      %first: fp32[1] = slice(%square) {limits = [1], starts = [0], strides = [1]}
      %difference: fp32[100000] = subtract(%square, %first)
      output y = %difference
    })");
  const auto executable = compile(*graph, Device::cpu());
  executable->bind(std::make_shared<Variables>(Device::cpu()));
  const Tensor x = testing::random_tensor(DataType::fp32, {100000}, 1, 2, 1);
  const Tensor y = executable->run({{"x", x}}).at("y");
  const auto square = [&](int64_t i) { return static_cast<float>(x.at(i)) * static_cast<float>(x.at(i)); };
  for (const int64_t i : {0, 1, 50000, 99999}) EXPECT_EQ(y.at(i), square(i) - square(0)) << i;
}

}  // namespace
}  // namespace tessera
