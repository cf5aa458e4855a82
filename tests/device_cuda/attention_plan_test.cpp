// The training steps of networks with attention, planned for a card that is not there.
#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/language_model.h"
#include "tessera/tasks/translation.h"
#include "tessera/train/step.h"

#include "device_cuda/attention_case.h"
#include "device_cuda/plan_case.h"

namespace tessera::testing {
namespace {

std::unique_ptr<Executable> planned_step(const nn::Task& task, const SymbolBindings& sizes,
                                         Precision precision, const std::set<std::string>& disabled = {}) {
  const train::StepGraph step = train::build_training_step(
      task, {.sizes = sizes, .phase = {.groups = {{.optimizer = optim::adamw()}}}, .precision = precision});
  CompileOptions options;
  options.passes.precision = precision;
  options.pipeline.disabled = disabled;
  return compile(*step.graph, Device::open("cuda:plan-h100"), options);
}

size_t transposes_of(const Executable& executable) {
  return count_nodes(executable, [](const NodeReport& node) {
    return node.operator_name == "transpose" && !node.candidates.empty();
  });
}

struct NetworkCase {
  std::string name;
  nn::Task task;
  SymbolBindings sizes;
  size_t attentions;  // with as many gradients
  size_t transposes;  // where attention reads heads one after the other
  bool is_short = false;
};

std::vector<NetworkCase> network_cases() {
  return {
      {"Bert",
       tasks::bert_pretraining(
           {.network = {.vocabulary = 1000, .width = 128, .layers = 2, .heads = 2, .inner = 256},
            .tokens = 128}),
       {{"batch", 4}},
       2,
       8},
      {"Decoder",
       tasks::language_model(
           {.network =
                {.vocabulary = 1000, .width = 128, .layers = 2, .heads = 2, .inner = 256, .positions = 128},
            .tokens = 128}),
       {{"batch", 4}},
       2,
       8},
      // The decoder's layers attend to the text, too, whose keys and values are one product.
      {"Transformer",
       tasks::translation({.network = {.vocabulary = 1000,
                                       .width = 128,
                                       .encoder_layers = 1,
                                       .decoder_layers = 1,
                                       .heads = 2,
                                       .inner = 256}}),
       {{"batch", 4}, {"tokens", 32}},
       3,
       14,
       true},
  };
}

TEST(CudaAttentionPlan, HeadsStayWhereProductsHaveThem) {
  for (const NetworkCase& network : network_cases()) {
    SCOPED_TRACE(network.name);
    const auto moved = planned_step(network.task, network.sizes, Precision::bf16,
                                    {"fuse_patterns/attention", "fuse_patterns/attention_gradient"});
    EXPECT_EQ(transposes_of(*moved), network.transposes);
    const auto executable = planned_step(network.task, network.sizes, Precision::bf16);
    EXPECT_EQ(transposes_of(*executable), 0U);
    if (network.is_short) {
      EXPECT_EQ(count_of_kernel(*executable, "generated.short_attention"), 2 * network.attentions);
    } else {
      EXPECT_EQ(count_of_kernel(*executable, "cudnn.attention"), network.attentions);
      EXPECT_EQ(count_of_kernel(*executable, "cudnn.attention_gradient"), network.attentions);
    }
  }
}

// cuDNN's attention is of 16 bits; what runs in its place reads heads one after the other.
TEST(CudaAttentionPlan, HeadsMoveInFp32) {
  for (const NetworkCase& network : network_cases())
    EXPECT_EQ(transposes_of(*planned_step(network.task, network.sizes, Precision::fp32)), network.transposes)
        << network.name;
}

// Heads of keys that several heads of queries share are read where they are, and their gradients come as
// sums: in 16 bits of cuDNN, in 32 of products over the queries of all of them.
TEST(CudaAttentionPlan, SharedKeysAreNotRepeated) {
  const auto counted = [](Precision precision, int64_t key_heads) {
    const nn::Task task = tasks::language_model({.network = {.form = models::DecoderForm::llama,
                                                             .vocabulary = 1000,
                                                             .width = 256,
                                                             .layers = 2,
                                                             .heads = 4,
                                                             .inner = 256,
                                                             .positions = 128,
                                                             .key_heads = key_heads},
                                                 .tokens = 128});
    return planned_step(task, {{"batch", 4}}, precision);
  };
  const auto count_of = [](const Executable& executable, std::string_view name) {
    return count_nodes(executable, [&](const NodeReport& node) { return node.operator_name == name; });
  };
  for (const int64_t key_heads : {1, 2}) {
    const auto own = counted(Precision::bf16, 4), shared = counted(Precision::bf16, key_heads);
    EXPECT_EQ(count_of_kernel(*shared, "cudnn.attention"), 2U);
    EXPECT_EQ(count_of_kernel(*shared, "cudnn.attention_gradient"), 2U);
    for (const char* name : {"broadcast_to", "reduce_sum", "fused:cluster", "transpose", "concat"})
      EXPECT_LE(count_of(*shared, name), count_of(*own, name)) << name;
    const auto wide = counted(Precision::fp32, key_heads);
    EXPECT_EQ(count_of(*wide, "broadcast_to"), count_of(*counted(Precision::fp32, 4), "broadcast_to"));
    EXPECT_EQ(count_of_kernel(*wide, "reference.host"), 0U);
    EXPECT_EQ(count_nodes(*wide,
                          [](const NodeReport& node) {
                            return node.operator_name.find("attention") != std::string::npos;
                          }),
              0U)
        << "an attention that nothing expanded";
  }
}

// No kernel of ours makes the gradient of keys that heads share, and cuDNN drops no weights: products and
// clusters do.
TEST(CudaAttentionPlan, GradientsOfSharedKeysAreWrittenOutWhereAllKernelsRefuse) {
  const AttentionCase own{.heads = 4, .type = DataType::bf16, .dropout = 0.1, .key_heads = 2};
  const auto executable = planned(*attention_graph(own), {});
  EXPECT_EQ(count_of_kernel(*executable, "generated.block_attention"), 1U);
  for (const char* kernel : {"reference", "reference.host"})
    EXPECT_EQ(count_of_kernel(*executable, kernel), 0U) << kernel;
  EXPECT_EQ(count_nodes(*executable,
                        [](const NodeReport& node) {
                          return node.operator_name.find("attention_gradient") != std::string::npos;
                        }),
            0U);
}

// In 16 bits a kernel draws the numbers that drop weights; in 32 products and clusters write the weights to
// memory. Nothing runs on the host.
TEST(CudaAttentionPlan, DroppedWeightsAreOfOneKernelOrOfProductsAndClusters) {
  for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::fp32}) {
    const nn::Task task = tasks::bert_pretraining({.network = {.vocabulary = 1000,
                                                               .width = 128,
                                                               .layers = 2,
                                                               .heads = 2,
                                                               .inner = 256,
                                                               .attention_dropout = 0.1},
                                                   .tokens = 128});
    const auto executable = planned_step(task, {{"batch", 4}}, precision);
    for (const char* kernel : {"cudnn.attention", "cudnn.attention_gradient", "generated.short_attention",
                               "reference", "reference.host"})
      EXPECT_EQ(count_of_kernel(*executable, kernel), 0U) << kernel;
    const size_t halves = precision == Precision::fp32 ? 0 : 4;  // of two layers
    EXPECT_EQ(count_of_kernel(*executable, "generated.block_attention"), halves);
    EXPECT_EQ(count_nodes(*executable,
                          [](const NodeReport& node) {
                            return node.operator_name.find("attention") != std::string::npos;
                          }),
              halves)
        << "an attention that nothing expanded";
    if (halves == 0) continue;  // products want their heads together
    EXPECT_EQ(
        count_nodes(*executable, [](const NodeReport& node) { return node.operator_name == "transpose"; }),
        0U);
  }
}

}  // namespace
}  // namespace tessera::testing
