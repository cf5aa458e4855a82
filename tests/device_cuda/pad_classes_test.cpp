// A head of many classes, whose logits and their gradient keep the rows of a product that is fast.
#include <algorithm>
#include <set>

#include "tessera/tasks/language_model.h"
#include "tessera/train/step.h"

#include "device_cuda/cuda_case.h"
#include "device_cuda/head_case.h"
#include "device_cuda/plan_case.h"

namespace tessera::testing {
namespace {

constexpr int64_t kBatch = 8;

std::unique_ptr<Graph> decoder_step(Precision precision, int64_t vocabulary, int64_t width) {
  const tasks::LanguageModelOptions options{.network = {.vocabulary = vocabulary,
                                                        .width = width,
                                                        .layers = 1,
                                                        .heads = 8,
                                                        .inner = 2 * width,
                                                        .positions = 256},
                                            .tokens = 256};
  return train::build_training_step(tasks::language_model(options),
                                    {.sizes = {{"batch", kBatch}},
                                     .phase = {.groups = {{.optimizer = optim::adamw()}}},
                                     .precision = precision})
      .graph;
}

std::unique_ptr<Executable> planned_step(const Graph& graph, Precision precision,
                                         const std::set<std::string>& disabled = {}) {
  CompileOptions options;
  options.passes.precision = precision;
  options.pipeline.disabled = disabled;
  return compile(graph, Device::open("cuda:plan-h100"), options);
}

// Of pads and slices that copy so many bytes or more.
size_t count_copies(const Executable& executable, double bytes) {
  return count_nodes(executable, [&](const NodeReport& node) {
    return (node.operator_name == "pad" || node.operator_name == "slice") && node.kernel != "alias" &&
           node.bytes >= bytes;
  });
}

TEST(CudaPadClasses, ADecoderCopiesNoLogits) {
  constexpr int64_t kVocabulary = 50257;
  const std::unique_ptr<Graph> graph = decoder_step(Precision::bf16, kVocabulary, 512);
  const double logits = 2.0 * kBatch * 255 * kVocabulary;
  const auto plain = planned_step(*graph, Precision::bf16, {"pad_classes"});
  EXPECT_EQ(count_copies(*plain, logits), 3U);  // a slice and the pads of two products
  EXPECT_EQ(count_copies(*plain, 0), 5U);       // and two of the weight
  const auto executable = planned_step(*graph, Precision::bf16);
  EXPECT_EQ(count_copies(*executable, logits), 0U);
  EXPECT_EQ(count_copies(*executable, 0), 1U);
  EXPECT_TRUE(std::ranges::none_of(executable->replaced(), [](const NodeReport& node) {
    return node.kernel == "padded";
  })) << "what is left has rows of whole accesses";
  // The gradient lies where the logits did.
  EXPECT_LT(static_cast<double>(executable->memory_plan().peak_bytes),
            static_cast<double>(plain->memory_plan().peak_bytes) - logits);
  // And reads them once: neither the loss nor its gradient is a node of its own.
  const auto count_of = [&](std::string_view name) {
    return count_nodes(*executable, [&](const NodeReport& node) { return node.operator_name == name; });
  };
  EXPECT_EQ(count_of("fused:cross_entropy"), 1U);
  EXPECT_EQ(count_of("cross_entropy") + count_of("cross_entropy_gradient"), 0U);
}

TEST(CudaPadClasses, OnlyWhereItPays) {
  const auto is_padded = [](const Executable& executable) { return count_copies(executable, 0) > 0; };
  EXPECT_FALSE(is_padded(*planned_step(*decoder_step(Precision::bf16, 50256, 512), Precision::bf16)));
  EXPECT_FALSE(is_padded(*planned_step(*decoder_step(Precision::bf16, 1003, 64), Precision::bf16)));
  EXPECT_FALSE(is_padded(*planned_step(*decoder_step(Precision::fp32, 50257, 512), Precision::tf32)));
}

TEST(CudaPadClasses, GivesWhatProductsOfAllClassesGive) {
  TESSERA_NEEDS_GPU();
  constexpr HeadCase kHead{.rows = 4096, .width = 512, .classes = 10007};
  const auto run = [&](const std::set<std::string>& disabled) {
    const auto executable = kHead.compiled(gpu_or_null(), disabled);
    EXPECT_EQ(std::ranges::any_of(executable->replaced(),
                                  [](const NodeReport& node) { return node.kernel == "padded"; }),
              !disabled.empty());
    return kHead.run(*executable, gpu_or_null());
  };
  kHead.expect_same(run({}), run({"pad_classes"}));
}

}  // namespace
}  // namespace tessera::testing
