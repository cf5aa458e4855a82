// Bodies and operands that are left out, on a device without kernels of its own for their operators.
#include "support/sample_operators.h"

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/graph/graph.h"

namespace tessera::testing {
namespace {

Tensor pair(float a, float b) {
  return Tensor::from<float>({2}, {a, b});
}

std::unique_ptr<Executable> compile_text(const std::string& text) {
  register_sample_operators();
  auto executable = compile(*parse_graph(text), Device::reference());
  executable->bind(std::make_shared<Variables>(Device::reference()));
  return executable;
}

TEST(ControlOperators, RunOnTheReferenceDevice) {
  const auto executable = compile_text(R"(graph g(input %condition: bool[], input %x: fp32[2]) {
  %y = sample_choice(%condition, %x) body graph then(input %a: fp32[2]) {
    %b = square(%a)
    output y = %b
  } body graph otherwise(input %a: fp32[2]) {
    %b = negate(%a)
    output y = %b
  }
  output y = %y
})");
  const auto run = [&](double condition) {
    return executable->run(
        {{"x", pair(2, 3)}, {"condition", Tensor::full(DataType::boolean, {}, condition)}});
  };
  EXPECT_EQ(run(1).at("y").to_doubles(), (std::vector<double>{4, 9}));
  EXPECT_EQ(run(0).at("y").to_doubles(), (std::vector<double>{-2, -3}));
}

TEST(LeftOutOperands, RunOnTheReferenceDevice) {
  const auto executable = compile_text(R"(graph g(input %x: fp32[2], input %scale: fp32[2]) {
  %y = sample_affine(%x, _, %scale, %x)
  output y = %y
})");
  EXPECT_EQ(executable->run({{"x", pair(2, 3)}, {"scale", pair(5, 7)}}).at("y").to_doubles(),
            (std::vector<double>{8, 18}));
}

}  // namespace
}  // namespace tessera::testing
