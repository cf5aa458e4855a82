// Queries, keys and values of one sequence from one product.
#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

// Of a device whose attention reads its operands wherever they lie.
PassContext moved(bool frozen = true) {
  PassContext context;
  context.options.frozen = frozen;
  context.target.patterns = {
      {.kind = "attention", .anchor = "attention", .roles = {}, .match = [](Node& attention) {
         return std::optional(FusionMatch{.members = {&attention}, .outputs = {}, .roles = {}});
       }}};
  return context;
}

const std::string kInputs = R"(
    graph g(input %x: fp32[2, 3, 4], input %other: fp32[2, 3, 4], parameter %wq: fp32[4, 8],
      parameter %wk: fp32[4, 8], parameter %wv: fp32[4, 6], parameter %bq: fp32[8], parameter %bk: fp32[8],
      parameter %bv: fp32[6]) {)";
const std::string kAttention = R"(
    %y, %stats = attention(%tq, %tk, %tv) {scale = 0.5}
    output y = %y
  })";

// Two heads of an operand: their places before its axis of positions.
std::string heads(const std::string& name, int width) {
  return "%r" + name + " = reshape(%" + name + ") {shape = [2, 3, 2, " + std::to_string(width) + "]} %t" +
         name + " = transpose(%r" + name + ") {permutation = [0, 2, 1, 3]}\n";
}

const std::string kHeads = heads("q", 4) + heads("k", 4) + heads("v", 3);

const Node* only(const Graph& graph, const std::string& name) {
  const Node* found = nullptr;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() != name) continue;
    EXPECT_EQ(found, nullptr) << name << " twice in\n" << print(graph);
    found = node.get();
  }
  return found;
}

// So many columns of one product, and so many products besides.
void expect_joined(const std::string& text, int64_t columns, int others,
                   const PassContext& context = moved()) {
  const std::unique_ptr<Graph> before = parse_graph(text);
  const std::unique_ptr<Graph> after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, "join_products", context)) << text;
  verify(*after);
  run_pass(*after, "remove_dead_code");
  int products = 0;
  for (const auto& node : after->nodes()) products += node->operator_name() == "matmul" ? 1 : 0;
  EXPECT_EQ(products, 1 + others) << print(*after);
  const Node* split = only(*after, "split");
  ASSERT_NE(split, nullptr) << print(*after);
  EXPECT_EQ(split->input(0)->shape().back().value(), columns);
  // Each number is the same sum.
  expect_same_results(*before, *after, kSameBits);
}

TEST(JoinProducts, OfOneSequence) {
  expect_joined(
      kInputs + "%q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%x, %wv)\n" + kHeads + kAttention, 22,
      0);
}

TEST(JoinProducts, WithBiases) {
  expect_joined(kInputs +
                    "%pq = matmul(%x, %wq) %q = add(%pq, %bq) %pk = matmul(%x, %wk) %k = add(%bk, %pk)\n"
                    "%pv = matmul(%x, %wv) %v = add(%pv, %bv)\n" +
                    kHeads + kAttention,
                22, 0);
}

TEST(JoinProducts, OfTransposedWeights) {
  const std::string text = R"(
    graph g(input %x: fp32[2, 3, 4], parameter %wq: fp32[8, 4], parameter %wk: fp32[8, 4], parameter %wv: fp32[6, 4]) {
      %q = matmul(%x, %wq) {transpose_b = true} %k = matmul(%x, %wk) {transpose_b = true}
      %v = matmul(%x, %wv) {transpose_b = true}
    )";
  expect_joined(text + kHeads + kAttention, 22, 0);
}

TEST(JoinProducts, KeysAndValuesOfAnotherSequence) {
  expect_joined(kInputs + "%q = matmul(%x, %wq) %k = matmul(%other, %wk) %v = matmul(%other, %wv)\n" +
                    kHeads + kAttention,
                14, 1);
  expect_joined(
      kInputs + "%q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%other, %wv)\n" + kHeads + kAttention,
      16, 1);
  expect_joined(
      kInputs + "%q = matmul(%x, %wq) %k = matmul(%other, %wk) %v = matmul(%x, %wv)\n" + kHeads + kAttention,
      14, 1);
}

TEST(JoinProducts, OfConstantWeightsInTraining) {
  const std::string constants = R"(
    graph g(input %x: fp32[1, 2, 1]) {
      %wq = constant() {value = fp32[1, 2] (1, 2)} %wk = constant() {value = fp32[1, 2] (3, 4)}
      %wv = constant() {value = fp32[1, 2] (5, 6)}
      %q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%x, %wv)
      %rq = reshape(%q) {shape = [1, 2, 2, 1]} %tq = transpose(%rq) {permutation = [0, 2, 1, 3]}
      %rk = reshape(%k) {shape = [1, 2, 2, 1]} %tk = transpose(%rk) {permutation = [0, 2, 1, 3]}
      %rv = reshape(%v) {shape = [1, 2, 2, 1]} %tv = transpose(%rv) {permutation = [0, 2, 1, 3]}
  )";
  expect_joined(constants + kAttention, 6, 0, moved(false));
}

TEST(JoinProducts, LeavesWhatItMayNotJoin) {
  const std::string products = "%q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%x, %wv)\n";
  const std::string plain = kInputs + products + kHeads + kAttention;
  // A device without such attention, weights that change, and no two of one value.
  expect_no_change("join_products", plain, PassContext{.options = {.frozen = true}, .target = {}});
  expect_no_change("join_products", plain, moved(false));
  expect_no_change("join_products",
                   kInputs +
                       "%q = matmul(%x, %wq) %k = matmul(%other, %wk) %v = split(%x) "
                       "{axis = 2, sizes = [4]}\n" +
                       heads("q", 4) + heads("k", 4) + heads("v", 2) + kAttention,
                   moved());
  // One that something else reads as well, one with a bias, and a sum that is no bias.
  expect_no_change("join_products",
                   kInputs + "%q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%other, %wv)\n" + kHeads +
                       "output q = %q\n" + kAttention,
                   moved());
  expect_no_change(
      "join_products",
      kInputs + "%p = matmul(%x, %wq) %q = add(%p, %bq) %k = matmul(%x, %wk) %v = matmul(%other, %wv)\n" +
          kHeads + kAttention,
      moved());
  expect_no_change(
      "join_products",
      kInputs + "%p = matmul(%x, %wq) %q = add(%p, %p) %k = matmul(%x, %wk) %v = matmul(%other, %wv)\n" +
          kHeads + kAttention,
      moved());
}

}  // namespace
}  // namespace tessera::testing
