// Products over padded operands: what the candidate's graph computes, which the reference says without a GPU,
// who is offered it, and where it comes first.
#include <algorithm>
#include <set>
#include <tuple>

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"
#include "support/tf32.h"

namespace tessera::testing {
namespace {

std::string product_text(DataType type, const std::string& a, const std::string& b, bool transpose_a,
                         bool transpose_b) {
  return fmt::format(
      "graph g(input %a: {0}{1}, input %b: {0}{2}) {{\n  %y = matmul(%a, %b) {{transpose_a = {3}, "
      "transpose_b = "
      "{4}}}\n  output y = %y\n}}",
      to_string(type), a, b, transpose_a, transpose_b);
}

KernelCandidate padded_of(const Device& device, const Node& node) {
  for (const KernelCandidate& candidate : device.candidates(node)) {
    if (candidate.name == "padded") return candidate;
  }
  ADD_FAILURE() << "no such candidate for " << print(node);
  return {};
}

KernelRequest request_for(const Node& node, bool tf32 = true) {
  return {.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false), .tf32 = tf32};
}

std::string refusal_of(const std::string& text, bool tf32 = true) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  const Node& node = *graph->nodes().back();
  return padded_of(*Device::open("cuda:plan-h100"), node).refusal(request_for(node, tf32));
}

bool is_multiple_of_16_bytes(const Value& value) {
  return value.type().static_shape().back() * static_cast<int64_t>(size_of(value.data_type())) % 16 == 0;
}

// Type, extents, which operands are transposed, axes of the batch.
struct ProductCase {
  DataType type = DataType::bf16;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  std::string batch_of_a;
  std::string batch_of_b;

  std::string text() const {
    const auto shape = [](const std::string& batch, int64_t rows, int64_t columns, bool transposed) {
      if (transposed) std::swap(rows, columns);
      return fmt::format("[{}{}, {}]", batch, rows, columns);
    };
    return product_text(type, shape(batch_of_a, m, k, transpose_a), shape(batch_of_b, k, n, transpose_b),
                        transpose_a, transpose_b);
  }
};

// Each axis aligned and not, with each way to transpose.
std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const int64_t m : {8, 13}) {
    for (const int64_t n : {24, 17}) {
      for (const int64_t k : {16, 31}) {
        for (const bool transpose_a : {false, true}) {
          for (const bool transpose_b : {false, true}) {
            const DataType type = (m + n + k) % 3 == 0   ? DataType::fp16
                                  : (m + n + k) % 3 == 1 ? DataType::bf16
                                                         : DataType::fp32;
            cases.push_back({type, m, n, k, transpose_a, transpose_b, "", ""});
            if (k == 31)
              cases.push_back({DataType::bf16, m, n, k, transpose_a, transpose_b, "2, 3, ", "3, "});
          }
        }
      }
    }
  }
  return cases;
}

class PaddedMatmul : public ::testing::TestWithParam<ProductCase> {
 protected:
  std::unique_ptr<Graph> graph_ = parse_graph(GetParam().text());
  const Node& node_ = *graph_->nodes().front();
};

TEST_P(PaddedMatmul, CudaComputesTheProductOfAlignedRows) {
  const KernelCandidate candidate = padded_of(*Device::open("cuda:plan-h100"), node_);
  const KernelRequest request = request_for(node_);
  const bool aligned = is_multiple_of_16_bytes(*node_.input(0)) && is_multiple_of_16_bytes(*node_.input(1)) &&
                       is_multiple_of_16_bytes(*node_.output());
  ASSERT_EQ(candidate.refusal(request), aligned ? "all rows are multiples of 16 bytes" : "");
  if (aligned) return;
  const std::shared_ptr<const Graph> graph = candidate.graph(request);
  verify(*graph);
  const Node* product = nullptr;
  for (const auto& node : graph->nodes()) {
    if (node->operator_name() == "matmul") product = node.get();
  }
  ASSERT_NE(product, nullptr);
  for (const Value* operand : {product->input(0), product->input(1), product->output()})
    EXPECT_TRUE(is_multiple_of_16_bytes(*operand)) << print(*graph);
  // Not again.
  EXPECT_EQ(padded_of(*Device::open("cuda:plan-h100"), *product).refusal(request_for(*product)),
            "all rows are multiples of 16 bytes");
  // Zeros change no sum.
  const std::vector<Tensor> inputs = random_inputs(node_, -1, 1);
  EXPECT_TRUE(run_reference(*graph, inputs).outputs[0].identical(run_reference(*graph_, inputs).outputs[0]));
}

TEST_P(PaddedMatmul, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  std::vector<Tensor> inputs = random_inputs(node_, -1, 1);
  const bool tf32 = GetParam().type == DataType::fp32;
  // Of what TF32 holds, so that nothing is rounded but sums.
  if (tf32) std::ranges::transform(inputs, inputs.begin(), rounded_to_tf32);
  const std::vector<std::string> names = expect_every_kernel(node_, inputs, tolerances_of(node_, inputs),
                                                             {false, false}, gpu_or_null(), true, {}, tf32);
  const std::string refusal = padded_of(*gpu_or_null(), node_).refusal(request_for(node_));
  EXPECT_EQ(std::ranges::find(names, "padded") != names.end(), refusal.empty());
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, PaddedMatmul, ::testing::ValuesIn(product_cases()),
                         [](const auto& test) {
                           const ProductCase& own = test.param;
                           return fmt::format("{}_{}_{}_{}{}{}{}", to_string(own.type), own.m, own.n, own.k,
                                              own.transpose_a ? "_a" : "", own.transpose_b ? "_b" : "",
                                              own.batch_of_a.empty() ? "" : "_batched");
                         });

TEST(PaddedMatmuls, RefuseWhatTheyAreNotFor) {
  EXPECT_EQ(refusal_of(product_text(DataType::fp64, "[5, 7]", "[7, 9]", false, false)), "not for exact fp64");
  EXPECT_EQ(refusal_of(product_text(DataType::fp32, "[5, 7]", "[7, 9]", false, false), false),
            "not for exact fp32");
  EXPECT_EQ(refusal_of(product_text(DataType::fp32, "[5, 7]", "[7, 9]", false, false)), "");
  EXPECT_EQ(refusal_of(product_text(DataType::int8, "[5, 7]", "[7, 9]", false, false)),
            "not for exact int32");
  EXPECT_EQ(refusal_of(product_text(DataType::bf16, "[5, 0]", "[0, 9]", false, false)),
            "a matrix without elements");
  // Whose rows are the leading axes' alone.
  EXPECT_EQ(refusal_of(product_text(DataType::bf16, "[5, 16]", "[16, 8]", false, false)),
            "all rows are multiples of 16 bytes");
}

struct Plan {
  std::set<std::string> kernels;            // of products
  std::vector<std::string> padded;          // operators of nodes that "padded" took the place of
  std::map<std::string, size_t> operators;  // those of nodes that run
};

Plan plan_of(const std::string& text, const std::string& card = "h100",
             Precision precision = Precision::fp32) {
  const auto executable =
      planned(*parse_graph(text), {.precision = precision}, Device::open("cuda:plan-" + card));
  Plan plan;
  for (const NodeReport& node : executable->nodes()) {
    if (node.operator_name.ends_with("matmul")) plan.kernels.insert(node.kernel);
    if (node.kernel != "alias") ++plan.operators[node.operator_name];
  }
  for (const NodeReport& node : executable->replaced()) {
    if (node.kernel == "padded") plan.padded.push_back(node.operator_name);
  }
  return plan;
}

// A decoder's head and its gradients, with 50257 words.
TEST(PaddedMatmuls, ComeFirstForLargeProductsOfAHead) {
  const Plan logits = plan_of(product_text(DataType::bf16, "[8, 1024, 1024]", "[50257, 1024]", false, true));
  EXPECT_EQ(logits.padded, std::vector<std::string>{"matmul"});
  EXPECT_EQ(logits.kernels, std::set<std::string>{"cublaslt.matmul"});
  EXPECT_EQ(logits.operators, (std::map<std::string, size_t>{{"pad", 1}, {"matmul", 1}, {"slice", 1}}));
  const Plan data = plan_of(product_text(DataType::fp16, "[8192, 50257]", "[50257, 1024]", false, false));
  EXPECT_EQ(data.operators, (std::map<std::string, size_t>{{"pad", 2}, {"matmul", 1}}));
  // Of the padded gradient all rows but the last are the gradient.
  const Plan weight = plan_of(product_text(DataType::bf16, "[8192, 50257]", "[8192, 1024]", true, false));
  EXPECT_EQ(weight.operators, (std::map<std::string, size_t>{{"pad", 1}, {"matmul", 1}}));
}

TEST(PaddedMatmuls, DoNotComeFirstWhereCopiesCostMoreOrNothingWasMeasured) {
  const auto expect_plain = [](const std::string& text, const std::string& card = "h100") {
    const Plan plan = plan_of(text, card, Precision::tf32);
    EXPECT_TRUE(plan.padded.empty()) << text << " on " << card;
    EXPECT_EQ(plan.operators, (std::map<std::string, size_t>{{"matmul", 1}}));
  };
  expect_plain(product_text(DataType::bf16, "[64, 512]", "[512, 33]", false, false));
  // Few terms: writing the result is what takes the time.
  expect_plain(product_text(DataType::bf16, "[8192, 64]", "[50257, 64]", false, true));
  expect_plain(product_text(DataType::bf16, "[8192, 1024]", "[50256, 1024]", false, true));
  expect_plain(product_text(DataType::fp32, "[8192, 1024]", "[50257, 1024]", false, true));
  expect_plain(product_text(DataType::bf16, "[8192, 1024]", "[50257, 1024]", false, true), "a100");
}

constexpr const char* kHeadWithBias =
    "graph g(input %x: bf16[4096, 768], input %w: bf16[30522, 768], input %bias: bf16[30522]) {\n"
    "  %p = matmul(%x, %w) {transpose_b = true}\n  %s = add(%p, %bias)\n  %y = gelu(%s) {approximate = "
    "true}\n"
    "  output y = %y\n}";

// The epilogue stays one, over a padded bias.
TEST(PaddedMatmuls, KeepTheirEpilogues) {
  const Plan plan = plan_of(kHeadWithBias);
  EXPECT_EQ(plan.padded, std::vector<std::string>{"fused:matmul"});
  EXPECT_EQ(plan.kernels, std::set<std::string>{"cublaslt.matmul"});
  EXPECT_EQ(plan.operators, (std::map<std::string, size_t>{{"pad", 2}, {"fused:matmul", 1}, {"slice", 1}}));
}

TEST(PaddedMatmuls, OfferTheEpilogueOverPaddedOperands) {
  const auto graph = parse_graph(
      "graph g(input %a: bf16[31, 13], input %b: bf16[31, 17], input %bias: bf16[17], input %r: bf16[13, "
      "17]) "
      "{\n  %p = matmul(%a, %b) {transpose_a = true}\n  %s = add(%p, %bias)\n  %t = add(%s, %r)\n"
      "  %y = relu(%t)\n  output y = %y\n}");
  PassContext context;
  context.target = Device::open("cuda:plan-h100")->pass_target({});
  run_pass(*graph, "fuse_patterns", context);
  const Node& node = *graph->nodes().front();
  ASSERT_NE(node.body(), nullptr);
  const KernelRequest request = request_for(node);
  const KernelCandidate candidate = padded_of(*Device::open("cuda:plan-h100"), node);
  ASSERT_EQ(candidate.refusal(request), "");
  const std::shared_ptr<const Graph> padded = candidate.graph(request);
  std::map<std::string, size_t> operators;
  for (const auto& inner : padded->nodes()) ++operators[inner->operator_name()];
  EXPECT_EQ(operators, (std::map<std::string, size_t>{{"pad", 4}, {"fused", 1}, {"slice", 1}}))
      << print(*padded);
  const std::vector<Tensor> inputs = random_inputs(*graph->nodes().front(), -1, 1);
  EXPECT_TRUE(run_reference(*padded, inputs).outputs[0].identical(run_reference(*graph, inputs).outputs[0]));
}

}  // namespace
}  // namespace tessera::testing
