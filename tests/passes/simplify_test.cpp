#include "passes/pass_case.h"

namespace tessera {
namespace {

using testing::expect_rewrite;
using testing::expect_untouched;

TEST(RemoveDeadCode, KeepsWhatOutputsAndUpdatesNeed) {
  expect_rewrite("remove_dead_code", R"(graph g(input %x: fp32[2], state %s: fp32[2]) {
  %a = exp(%x)
  %b = log(%a)
  %c = square(%x)
  output a = %a
  update %s = %c
})",
                 R"(graph g(input %x: fp32[2], state %s: fp32[2]) {
  %a = exp(%x)
  %c = square(%x)
  output a = %a
  update %s = %c
})");
}

TEST(FoldConstants, ComputesWhatIsKnown) {
  expect_rewrite("fold_constants", R"(graph g(input %x: fp32[2]) {
  %a = constant() {value = fp32[] (2)}
  %b = constant() {value = fp32[] (3)}
  %c = multiply(%a, %b)
  %y = add(%x, %c)
  output y = %y
})",
                 R"(graph g(input %x: fp32[2]) {
  %a = constant() {value = fp32[] (2)}
  %b = constant() {value = fp32[] (3)}
  %constant = constant() {value = fp32[] (6)}
  %y = add(%x, %constant)
  output y = %y
})");
}

TEST(FoldConstants, LeavesLargeResultsToTheDevice) {
  expect_untouched("fold_constants", R"(graph g(input %x: fp32[100, 100]) {
  %a = constant() {value = fp32[] (2)}
  %b = broadcast_to(%a) {shape = [100, 100]}
  %y = add(%x, %b)
  output y = %y
})");
}

// Other passes look at places, which are large where large tensors are gathered from.
TEST(FoldConstants, ComputesManyPlaces) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(graph g() {
  %one = constant() {value = int64[] (1)}
  %places = broadcast_to(%one) {shape = [8192]}
  output places = %places
})");
  EXPECT_TRUE(testing::run_pass("fold_constants", *graph, {}));
  EXPECT_EQ(graph->nodes().back()->operator_name(), "constant");
}

TEST(CommonSubexpressions, MergesEqualWorkOnEqualInputs) {
  expect_rewrite("common_subexpressions", R"(graph g(input %x: fp32[2]) {
  %a = exp(%x)
  %b = exp(%x)
  %y = add(%a, %b)
  output y = %y
})",
                 R"(graph g(input %x: fp32[2]) {
  %a = exp(%x)
  %y = add(%a, %a)
  output y = %y
})");
}

TEST(CommonSubexpressions, TellsAttributesAndInputsApart) {
  expect_untouched("common_subexpressions", R"(graph g(input %x: fp32[2, 2], input %z: fp32[2, 2]) {
  %a = reduce_sum(%x) {axes = [0]}
  %b = reduce_sum(%x) {axes = [1]}
  %c = exp(%x)
  %d = exp(%z)
  output a = %a
  output b = %b
  output c = %c
  output d = %d
})");
}

TEST(SimplifyAlgebra, DropsNeutralOperands) {
  expect_rewrite("simplify_algebra", R"(graph g(input %x: fp32[2]) {
  %zero = constant() {value = fp32[] (0)}
  %one = constant() {value = fp32[] (1)}
  %a = add(%x, %zero)
  %b = multiply(%one, %a)
  %c = divide(%b, %one)
  %d = negate(%c)
  %e = negate(%d)
  output y = %e
})",
                 R"(graph g(input %x: fp32[2]) {
  %zero = constant() {value = fp32[] (0)}
  %one = constant() {value = fp32[] (1)}
  %d = negate(%x)
  output y = %x
})");
}

TEST(SimplifyAlgebra, KeepsOperandsThatWidenTheShape) {
  expect_untouched("simplify_algebra", R"(graph g(input %x: fp32[2]) {
  %ones = constant() {value = fp32[3, 1] (1, 1, 1)}
  %y = multiply(%x, %ones)
  output y = %y
})");
}

TEST(SimplifyAlgebra, MergesReshapesAndTransposes) {
  expect_rewrite("simplify_algebra", R"(graph g(input %x: fp32[2, 3, 4]) {
  %a = transpose(%x) {permutation = [2, 0, 1]}
  %b = transpose(%a) {permutation = [1, 2, 0]}
  output y = %b
})",
                 R"(graph g(input %x: fp32[2, 3, 4]) {
  %a = transpose(%x) {permutation = [2, 0, 1]}
  output y = %x
})");
}

TEST(SimplifyAlgebra, KeepsATransposeThatMoves) {
  expect_untouched("simplify_algebra", R"(graph g(input %x: fp32[2, 3]) {
  %a = transpose(%x) {permutation = [1, 0]}
  output y = %a
})");
}

TEST(SimplifyAlgebra, ReadsTheSmallOperandInsteadOfItsBroadcast) {
  expect_rewrite("simplify_algebra", R"(graph g(input %x: fp32[4, 3], input %b: fp32[3]) {
  %wide = broadcast_to(%b) {shape = [4, 3]}
  %y = multiply(%x, %wide)
  output y = %y
})",
                 R"(graph g(input %x: fp32[4, 3], input %b: fp32[3]) {
  %wide: fp32[4, 3] = broadcast_to(%b) {shape = [4, 3]}
  %y_1: fp32[4, 3] = multiply(%x, %b)
  output y = %y_1
})");
}

TEST(SimplifyAlgebra, KeepsABroadcastThatTheResultNeeds) {
  expect_untouched("simplify_algebra", R"(graph g(input %x: fp32[3], input %b: fp32[3]) {
  %wide = broadcast_to(%b) {shape = [4, 3]}
  %y = multiply(%x, %wide)
  output y = %y
})");
}

TEST(SimplifyAlgebra, DropsACastThatIsTakenBack) {
  expect_rewrite("simplify_algebra", R"(graph g(input %x: bf16[2]) {
  %a = cast(%x) {type = fp32}
  %b = cast(%a) {type = bf16}
  output y = %b
})",
                 R"(graph g(input %x: bf16[2]) {
  %a = cast(%x) {type = fp32}
  output y = %x
})");
}

TEST(SimplifyAlgebra, KeepsACastThatLosesBits) {
  expect_untouched("simplify_algebra", R"(graph g(input %x: fp32[2]) {
  %a = cast(%x) {type = bf16}
  %b = cast(%a) {type = fp32}
  output y = %b
})");
}

TEST(SimplifyAlgebra, NarrowsWhatIsJoinedBefore) {
  expect_rewrite("simplify_algebra", R"(graph g(input %a: fp32[2, 3], input %b: fp32[4, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %y = cast(%joined) {type = bf16}
  output y = %y
})",
                 R"(graph g(input %a: fp32[2, 3], input %b: fp32[4, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %cast = cast(%a) {type = bf16}
  %cast_1 = cast(%b) {type = bf16}
  %concat = concat(%cast, %cast_1) {axis = 0}
  output y = %concat
})");
}

TEST(SimplifyAlgebra, KeepsJoinsThatAreWidenedOrReadByOthers) {
  expect_untouched("simplify_algebra", R"(graph g(input %a: bf16[2, 3], input %b: bf16[4, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %y = cast(%joined) {type = fp32}
  output y = %y
})");
  expect_untouched("simplify_algebra", R"(graph g(input %a: fp32[2, 3], input %b: fp32[4, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %y = cast(%joined) {type = bf16}
  output y = %y
  output joined = %joined
})");
}

TEST(SimplifyAlgebra, KeepsTheBroadcastBeforeWhatDoesNotBroadcast) {
  expect_untouched("simplify_algebra", R"(graph g(input %x: fp32[8, 1]) {
  %one = constant() {value = fp32[] (1)}
  %targets = broadcast_to(%one) {shape = [8, 1]}
  %y = binary_cross_entropy(%x, %targets)
  output y = %y
})");
  expect_untouched("simplify_algebra", R"(graph g(input %x: fp32[8, 4], input %c: fp32[4]) {
  %one = constant() {value = fp32[] (1)}
  %bias = broadcast_to(%one) {shape = [4]}
  %y = batch_norm_inference(%x, %c, %bias, %c, %c)
  output y = %y
})");
}

// As channels of a single pixel are, which a product makes last and another reads last.
TEST(SimplifyAlgebra, LooksAtTheWholeInPlaceOfGatheringAllOfIt) {
  expect_rewrite("simplify_algebra", R"(graph g(input %x: fp32[2, 4]) {
  %places = constant() {value = int64[2, 2] (0, 1, 2, 3)}
  %y = gather(%x, %places) {axis = -1}
  output y = %y
})",
                 R"(graph g(input %x: fp32[2, 4]) {
  %places = constant() {value = int64[2, 2] (0, 1, 2, 3)}
  %reshape = reshape(%x) {shape = [2, 2, 2]}
  output y = %reshape
})");
}

TEST(SimplifyAlgebra, GathersWhatIsInAnotherOrderOrNotAll) {
  for (const char* places : {"int64[2, 2] (0, 1, 3, 2)", "int64[3] (0, 1, 2)", "int64[4] (1, 2, 3, 0)"}) {
    const std::string text = fmt::format(R"(graph g(input %x: fp32[2, 4]) {{
  %places = constant() {{value = {}}}
  %y = gather(%x, %places) {{axis = 1}}
  output y = %y
}})",
                                         places);
    expect_untouched("simplify_algebra", text.c_str());
  }
}

TEST(SimplifyAlgebra, SlicesThePartInPlaceOfTheJoin) {
  // The whole of the second part, by limits beyond it and from the end; a piece of the first; every second
  // row.
  expect_rewrite("simplify_algebra", R"(graph g(input %a: fp32[4, 3], input %b: fp32[2, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %whole = slice(%joined) {starts = [4, 0], limits = [9, 3], strides = [1, 1]}
  %last = slice(%joined) {starts = [-2, 1], limits = [6, 3], strides = [1, 1]}
  %some = slice(%joined) {starts = [0, 0], limits = [4, 3], strides = [2, 1]}
  output whole = %whole
  output last = %last
  output some = %some
})",
                 R"(graph g(input %a: fp32[4, 3], input %b: fp32[2, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %slice_1 = slice(%b) {limits = [2, 3], starts = [0, 1], strides = [1, 1]}
  %slice_2 = slice(%a) {limits = [3, 3], starts = [0, 0], strides = [2, 1]}
  output whole = %b
  output last = %slice_1
  output some = %slice_2
})");
  expect_untouched("simplify_algebra", R"(graph g(input %a: fp32[4, 3], input %b: fp32[2, 3]) {
  %joined = concat(%a, %b) {axis = 0}
  %both = slice(%joined) {limits = [5, 3], starts = [3, 0], strides = [1, 1]}
  %none = slice(%joined) {limits = [2, 3], starts = [2, 0], strides = [1, 1]}
  output both = %both
  output none = %none
})");
}

TEST(SimplifyAlgebra, AppliesActivationsBeforeWhatIsReshapedAgain) {
  expect_rewrite("simplify_algebra", R"(graph g(input %x: fp32[2, 1, 1, 8]) {
  %first = reshape(%x) {shape = [2, 8, 1, 1]}
  %y = leaky_relu(%first) {slope = 0.25}
  %last = reshape(%y) {shape = [2, 1, 1, 8]}
  output y = %last
})",
                 R"(graph g(input %x: fp32[2, 1, 1, 8]) {
  %first = reshape(%x) {shape = [2, 8, 1, 1]}
  %y_1 = leaky_relu(%x) {slope = 0.25}
  %reshape = reshape(%y_1) {shape = [2, 8, 1, 1]}
  output y = %y_1
})");
  const std::string start = R"(graph g(input %x: fp32[2, 1, 1, 8], input %b: fp32[2, 8, 1, 1]) {
  %first = reshape(%x) {shape = [2, 8, 1, 1]}
  %y = relu(%first)
  %last = reshape(%y) {shape = [2, 1, 1, 8]}
  output last = %last
)";
  for (const char* reader : {"  output y = %y\n}", "  %sum = add(%y, %b)\n  output sum = %sum\n}",
                             "  %sum = add(%first, %b)\n  output sum = %sum\n}"})
    expect_untouched("simplify_algebra", (start + reader).c_str());
}

}  // namespace
}  // namespace tessera
