// Modules of several islands: their values stay on the card, and recorded runs find them there.
#include "program/program_test.h"

#include "device_cuda/cuda_case.h"

namespace tessera::testing {
namespace {

using program::Block;
using program::declare;
using program::instruction;

// end = (1 + times) * the first n elements of 2 * x, where n is the sum of `few`.
std::shared_ptr<const program::Module> several_islands() {
  const TensorType vector{DataType::fp32, {Dimension::symbol("n")}};
  Block body;
  body.name = "body";
  body.inputs = {declare("before", vector)};
  body.outputs = {{"after", "", {}}};
  body.instructions = {instruction("add", {"before", "taken"}, {"after"})};
  Block block;
  block.name = "main";
  block.inputs = {declare("x", vector), declare("few", vector), declare("times", vector)};
  block.outputs = {{"end", "", {}}};
  block.instructions = {instruction("add", {"x", "x"}, {"twice"}), instruction("sum", {"few"}, {"n"}),
                        instruction("take", {"twice", "n"}, {"taken"}),
                        instruction("repeat", {"times", "taken"}, {"end"})};
  prepare(body, &block);
  block.instructions.back().arguments["body"] = std::make_shared<const Block>(std::move(body));
  return program::module_of(std::move(block));
}

TEST(CudaProgram, ValuesStayOnTheCardBetweenIslands) {
  TESSERA_NEEDS_GPU();
  constexpr int64_t kCount = 100'000;
  program::Runner runner(several_islands(), {.devices = {gpu_or_null()}});
  // The second iteration of a body is recorded, and so is the second run of what is before it.
  for (const int64_t times : {5, 1, 7, 0, 5}) {
    Tensor x(DataType::fp32, {kCount});
    for (int64_t i = 0; i < kCount; ++i) x.set(i, static_cast<double>((i + times) % 1000));
    const int64_t taken = kCount - 1000 * (times % 2);
    const auto outputs = runner.run({{"x", x},
                                     {"few", program::numbers({static_cast<float>(taken), 0})},
                                     {"times", program::numbers({static_cast<float>(times)})}});
    const Tensor& end = *outputs.at("end").tensor();
    ASSERT_EQ(end.shape(), Shape{taken});
    for (int64_t i = 0; i < taken; ++i)
      ASSERT_EQ(end.at(i), static_cast<double>(2 * (1 + times) * ((i + times) % 1000))) << i;
  }
}

}  // namespace
}  // namespace tessera::testing
