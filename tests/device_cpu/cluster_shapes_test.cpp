// Broadcasts and reductions over shapes that cross the bounds of tiles, rows and threads.
#include "device_cpu/cpu_case.h"
#include "support/decisive_inputs.h"
#include "support/integer_arithmetic.h"

namespace tessera::testing {
namespace {

std::string typed(DataType type, const Shape& shape) {
  return std::string(to_string(type)) + to_string(shape);
}

TEST(ClusterShapes, Broadcasts) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{100003}, {100003}},
      {{100003}, {1}},
      {{100003}, {}},
      {{33, 2049}, {2049}},
      {{33, 2049}, {33, 1}},
      {{1, 2049}, {33, 1}},
      {{257, 64}, {64}},
      {{257, 64}, {257, 1}},
      {{1031, 3}, {3}},
      {{1031, 3}, {1031, 1}},
      {{5, 7, 11, 13}, {7, 1, 13}},
      {{5, 7, 11, 13}, {5, 1, 11, 1}},
      {{3, 1, 5000}, {3, 4, 1}},
      {{2, 3, 4096}, {3, 1}},
      {{2, 3, 4, 5, 6}, {3, 1, 5, 1}},
      {{1, 1}, {1}},
      {{0, 5}, {5}},
      {{70, 1, 70}, {70, 70, 1}},
  };
  for (DataType type :
       {DataType::fp32, DataType::fp64, DataType::fp16, DataType::bf16, DataType::int8, DataType::int32,
        DataType::int64, DataType::int16, DataType::uint16, DataType::uint32}) {
    for (const auto& [a, b] : shapes) {
      const Case own =
          text_case("graph subtract(input %a: " + typed(type, a) + ", input %b: " + typed(type, b) +
                        ") { %y = subtract(%a, %b) output y = %y }",
                    3, -50, 50);
      expect_as_reference(own, OperatorClass::elementwise, {.magnitude = 100});
    }
  }
}

TEST(ClusterShapes, IntegersWrapInsideAClusterToo) {
  for (const DataType type : kIntegersOfAllSizes) {
    const Case own = integer_arithmetic(type);
    const Tolerances exact(own.graph->outputs().size());
    expect_as_reference(own, exact);
    expect_as_reference(own, exact, true);
    EXPECT_EQ(run_on_cpu(own, true).kernels, std::vector<std::string>{"loops.cluster"}) << own.name;
  }
}

// The planner asks of each place whether the kernel may write over it.
TEST(ClusterShapes, OneOperandInTwoPlaces) {
  const Case own = text_case(R"(graph twice(input %a: fp32[3, 5], input %b: fp32[3, 5]) {
  %x = subtract(%a, %b)
  %less = less(%b, %a)
  %chosen = select(%less, %x, %x)
  %largest = maximum(%chosen, %chosen)
  output y = %largest
})");
  expect_as_reference(own, OperatorClass::elementwise, {.magnitude = 4});
  expect_as_reference(own, OperatorClass::elementwise, {.magnitude = 4}, true);
}

struct ReductionCase {
  Shape shape;
  std::string axes;
};

TEST(ClusterShapes, Reductions) {
  const std::vector<ReductionCase> cases = {
      {{100003}, "[]"},
      {{3001, 64}, "[0]"},
      {{3001, 3}, "[0]"},
      {{64, 3001}, "[1]"},
      {{5, 40000}, "[0]"},
      {{2, 20000}, "[1]"},
      {{300, 5000}, "[0]"},
      {{4, 50, 16}, "[1]"},
      {{4, 5, 6, 7, 8}, "[0, 2, 4]"},
      {{4, 5, 6, 7, 8}, "[1, 3]"},
      {{40, 70, 10}, "[0, 2]"},
      {{5000, 10}, "[1]"},
      {{1, 7}, "[0]"},
      {{7, 1}, "[1]"},
      {{0, 3}, "[0]"},
      {{3, 0}, "[0]"},
      {{40000, 1}, "[1]"},
      {{1}, "[]"},
  };
  for (const std::string name : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_product"}) {
    const OperatorSchema& schema = OperatorRegistry::instance().get(name);
    const bool product = name == "reduce_product";
    for (DataType type : kAllDataTypes) {
      if (!schema.inputs[0].types.contains(type)) continue;
      for (const ReductionCase& shape : cases) {
        // The reference is slow; the large shapes are about tiles and threads, not about types.
        if (type != DataType::fp32 && element_count(shape.shape) > 50000) continue;
        Case own = text_case("graph " + name + "(input %x: " + typed(type, shape.shape) + ") { %y = " + name +
                                 "(%x) {axes = " + shape.axes + "} output y = %y }",
                             5, product ? 0.999 : -2, product ? 1.001 : 2);
        make_decisive(*own.graph->nodes().back(), own.inputs);
        expect_as_reference(own);
      }
    }
  }
}

// A NaN wins over every number, wherever it stands.
TEST(ClusterShapes, ExtremesOfNaN) {
  for (int64_t place : {0, 5, 4099, 9999}) {
    Case own = text_case(
        "graph extremes(input %x: fp32[10000]) { %low = reduce_min(%x) %high = reduce_max(%x) "
        "output low = %low output high = %high }");
    own.inputs[0].set(place, std::nan(""));
    const CpuRun run = run_on_cpu(own);
    EXPECT_TRUE(std::isnan(run.outputs[0].at(0)) && std::isnan(run.outputs[1].at(0))) << place;
  }
}

// A sum of a million equal numbers is right to the last bits: short runs in fp32, then doubles. The bound is
// eight roundings; numbers added one by one would be off by 1e-2.
TEST(ClusterShapes, LongSums) {
  Case own =
      text_case("graph sum(input %x: fp32[1000000]) { %y = reduce_sum(%x) output y = %y }", 1, 0.1, 0.1);
  expect_close(run_on_cpu(own).outputs[0], std::vector<double>{1000000 * static_cast<double>(0.1f)},
               {.absolute = 0, .relative = 5e-7});
}

}  // namespace
}  // namespace tessera::testing
