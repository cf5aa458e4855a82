// The training step of a transformer encoder, planned for a card that is not there.
#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/train/step.h"

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

// BERT-base's sizes.
constexpr int64_t kBatch = 32;
constexpr tasks::MaskedLanguageModelOptions kEncoder{
    .tokens = 128, .vocabulary = 30521, .width = 768, .heads = 12, .layers = 12, .dropout = 0.1};
constexpr int64_t kRows = kBatch * kEncoder.tokens;

struct Totals {
  size_t kernels = 0;
  double bytes = 0;
};

// What runs in every run.
Totals totals_of(const Executable& executable) {
  Totals totals;
  for (const NodeReport& node : executable.nodes()) {
    if (node.once || node.candidates.empty()) continue;
    ++totals.kernels;
    totals.bytes += node.bytes;
  }
  return totals;
}

// Of an operator, also where its parts run.
Totals totals_of(const Executable& executable, std::string_view operator_name) {
  Totals totals;
  for (const auto* nodes : {&executable.nodes(), &executable.replaced()}) {
    for (const NodeReport& node : *nodes) {
      if (node.operator_name != operator_name) continue;
      ++totals.kernels;
      totals.bytes += node.bytes;
    }
  }
  return totals;
}

std::unique_ptr<Executable> planned(const nn::Task& task, Precision precision,
                                    const std::set<std::string>& disabled = {}) {
  const train::StepGraph step =
      train::build_training_step(task, {.sizes = {{"batch", kBatch}},
                                        .phase = {.groups = {{.optimizer = optim::adamw()}}},
                                        .precision = precision});
  CompileOptions options;
  options.passes.precision = precision;
  options.pipeline.disabled = disabled;
  return compile(*step.graph, Device::open("cuda:plan-h100"), options);
}

std::unique_ptr<Executable> planned_encoder(Precision precision, const std::set<std::string>& disabled = {}) {
  return planned(tasks::masked_language_model(kEncoder), precision, disabled);
}

const std::set<std::string> kResidualNorms = {"fuse_patterns/residual_layer_norm",
                                              "fuse_patterns/residual_layer_norm_gradient"};

std::unique_ptr<Executable> planned_unfused(Precision precision) {
  return planned_encoder(precision, kResidualNorms);
}

// Statistics, scale and shift beside them are fp32.
TEST(CudaEncoderPlan, NormsAndLossesReadSixteenBits) {
  const auto executable = planned_unfused(Precision::fp16);
  const auto norms = static_cast<double>(2 * kEncoder.layers + 1);
  const auto rows = static_cast<double>(kRows);
  const auto width = static_cast<double>(kEncoder.width);
  const Totals forward = totals_of(*executable, "layer_norm");
  EXPECT_EQ(static_cast<double>(forward.kernels), norms);
  EXPECT_EQ(forward.bytes, norms * (2 * rows * width * 2 + 2 * width * 4 + 2 * rows * 4));
  const Totals backward = totals_of(*executable, "layer_norm_gradient");
  EXPECT_EQ(static_cast<double>(backward.kernels), norms);
  EXPECT_EQ(backward.bytes, norms * (3 * rows * width * 2 + 3 * width * 4 + 2 * rows * 4));
  // And the mask; rows are whole accesses.
  const auto words = static_cast<double>(round_up(kEncoder.vocabulary + 1, int64_t{8}));
  // One reading for the loss and its gradient; labels, the losses and their gradients beside it.
  EXPECT_EQ(totals_of(*executable, "fused:cross_entropy").bytes, rows * (2 * words * 2 + 4 + 4 + 4));
}

// Where norms come after the sums, the gradient of what the loss picks is all that reaches them, and is a sum
// in fp32. The sums of residuals' gradients are a product's epilogue: of the projections that attention
// reads, and of the wide half of each layer.
TEST(CudaEncoderPlan, GradientsOfNormsAfterSumsAreInSixteenBits) {
  const tasks::BertPretrainingOptions options{
      .network = {.width = 256, .layers = 3, .heads = 4, .inner = 1024, .positions = 64}, .tokens = 64};
  const auto executable = planned(tasks::bert_pretraining(options), Precision::bf16, kResidualNorms);
  const auto width = static_cast<double>(options.network.width);
  const auto bytes_of = [&](double rows) { return 3 * rows * width * 2 + 3 * width * 4 + 2 * rows * 4; };
  // And the norms of the embeddings and of the words that fill gaps.
  const Totals norms = totals_of(*executable, "layer_norm_gradient");
  const auto of_tokens = static_cast<double>(2 * options.network.layers + 1);
  EXPECT_EQ(static_cast<double>(norms.kernels), of_tokens + 1);
  EXPECT_EQ(norms.bytes, of_tokens * bytes_of(static_cast<double>(kBatch * options.tokens)) +
                             bytes_of(static_cast<double>(kBatch * options.places())));
  const auto& nodes = executable->nodes();
  EXPECT_EQ(std::ranges::count_if(nodes,
                                  [](const NodeReport& node) {
                                    return node.operator_name == "fused:matmul" &&
                                           node.name.find(".gradient/add") != std::string::npos;
                                  }),
            2 * options.network.layers);
}

// The figures of docs/cuda/precision.md.
TEST(CudaEncoderPlan, MovesFewerBytesInSixteenBits) {
  const Totals fp32 = totals_of(*planned_unfused(Precision::fp32));
  const Totals fp16 = totals_of(*planned_unfused(Precision::fp16));
  EXPECT_EQ(fp32.kernels, 518U);
  EXPECT_EQ(fp16.kernels, 344U);
  constexpr double kRounding = 0.05e9;
  EXPECT_NEAR(fp32.bytes, 31.99e9, kRounding);
  EXPECT_NEAR(fp16.bytes, 16.33e9, kRounding);
}

// After the first, which normalizes embeddings, each norm has a sum before it. The gradient of that one, too,
// is added to what comes to it from elsewhere, which leaves a cluster with less to do.
TEST(CudaEncoderPlan, NormsAreOneKernelWithTheSumsBeforeThem) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    const auto fused = planned_encoder(precision);
    const auto parts = static_cast<size_t>(2 * kEncoder.layers);
    EXPECT_EQ(count_of_kernel(*fused, "generated.residual_layer_norm"), parts);
    EXPECT_EQ(count_of_kernel(*fused, "generated.residual_layer_norm_gradient"), parts + 1);
    const Totals before = totals_of(*planned_unfused(precision));
    const Totals after = totals_of(*fused);
    // The sum before a norm is a kernel by itself in its place, and so is what follows the gradient.
    EXPECT_EQ(after.kernels, before.kernels - 2 * parts);
    EXPECT_LT(after.bytes, before.bytes);
  }
}

// Rows of whole and of single vectors, short, long, and longer than a block has threads.
TEST(CudaEncoderPlan, TextOfItsNormsCompiles) {
  const PassTarget target = Device::open("cuda:plan-h100")->pass_target({});
  for (const std::string type : {"fp32", "fp16", "bf16"}) {
    for (const int64_t width : {64, 768, 1001, 8192}) {
      const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
          R"(graph g(input %h: {0}[64, {1}], input %b: {0}[{1}], input %r: {0}[64, {1}], input %scale: fp32[{1}],
                     input %shift: fp32[{1}], input %c: int64[2], input %dy: {0}[64, {1}], input %more: {0}[64, {1}]) {{
  %biased = add(%h, %b)
  %kept = dropout(%biased, %c) {{rate = 0.1, stream = 3}}
  %sum = add(%r, %kept)
  %y, %mean, %inverse = layer_norm(%sum, %scale, %shift)
  %dx, %dscale, %dshift = layer_norm_gradient(%dy, %sum, %scale, %mean, %inverse)
  %dsum = add(%dx, %more)
  %dh = dropout(%dsum, %c) {{rate = 0.1, stream = 3}}
  %wide = cast(%dh) {{type = fp32}}
  %db = reduce_sum(%wide) {{axes = [0]}}
  output y = %y
  output dsum = %dsum
  output dscale = %dscale
  output dh = %dh
  output db = %db
}})",
          type, width));
      PassContext context;
      context.target = target;
      EXPECT_TRUE(run_pass(*graph, "fuse_patterns", context));
      ASSERT_EQ(graph->nodes().size(), 2U) << print(*graph);
      for (const auto& node : graph->nodes()) EXPECT_GE(compile_candidates(*node), 1U);
    }
  }
}

}  // namespace
}  // namespace tessera::testing
