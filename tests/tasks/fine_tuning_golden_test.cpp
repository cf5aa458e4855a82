// What fine tuning computes, beside transformers' (tests/golden/bert_heads.py).
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"
#include "tessera/ops/functions.h"
#include "tessera/tasks/question_answering.h"
#include "tessera/tasks/text_classification.h"
#include "tessera/tasks/text_tagging.h"

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/golden.h"
#include "tasks/golden_training.h"

namespace tessera::testing {
namespace {

constexpr int64_t kBatch = 3;
constexpr int64_t kTokens = 10;

tasks::FineTuningOptions small_options() {
  return {.network = {.vocabulary = 37,
                      .width = 16,
                      .layers = 2,
                      .heads = 2,
                      .inner = 24,
                      .positions = 12,
                      .dropout = 0,
                      .labels = {"one", "two", "three"}},
          .tokens = kTokens};
}

Feeds golden_texts() {
  return {{"tokens", golden_integers("bert.tokens", {kBatch, kTokens}, 37)},
          {"segments", golden_integers("bert.segments", {kBatch, kTokens}, 2)},
          {"lengths", Tensor::from<int32_t>({kBatch}, {10, 7, 4})}};
}

// Every second token within the lengths has a tag.
Tensor golden_tags() {
  Tensor tags = golden_integers("heads.tags", {kBatch, kTokens}, 3);
  const Tensor lengths = golden_texts().at("lengths");
  for (int64_t row = 0; row < kBatch; ++row) {
    for (int64_t place = 0; place < kTokens; ++place)
      if (place % 2 == 0 || place >= lengths.at(row)) tags.set(row * kTokens + place, -1);
  }
  return tags;
}

struct HeadCase {
  const char* name;
  nn::Task task;
  Feeds asked;                                // beside the texts
  std::map<std::string, std::string> served;  // what transformers calls it
};

class FineTuning : public ::testing::TestWithParam<HeadCase> {};
INSTANTIATE_TEST_SUITE_P(Heads, FineTuning,
                         ::testing::Values(HeadCase{"classification",
                                                    tasks::text_classification(small_options()),
                                                    {{"labels",
                                                      golden_integers("heads.labels", {kBatch}, 3)}},
                                                    {{"logits", "logits"}}},
                                           HeadCase{"tagging",
                                                    tasks::text_tagging(small_options()),
                                                    {{"labels", golden_tags()}},
                                                    {{"logits", "logits"}}},
                                           HeadCase{"answering",
                                                    tasks::question_answering(small_options()),
                                                    {{"starts", Tensor::from<int32_t>({kBatch}, {3, 0, 1})},
                                                     {"ends", Tensor::from<int32_t>({kBatch}, {5, 0, 1})}},
                                                    {{"starts", "start_logits"}, {"ends", "end_logits"}}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(FineTuning, GivesTransformersOutputsLossAndGradientsOnEachDevice) {
  const data::SafetensorsFile golden = open_golden("bert_heads");
  const HeadCase& head = GetParam();
  const auto expected = [&](const std::string& name) {
    return golden.read(head.name + ("." + name)).to_doubles();
  };
  Feeds feeds = golden_texts();
  feeds.insert(head.asked.begin(), head.asked.end());
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& device : devices) {
    Graph graph;
    nn::Context context(graph, nn::Mode::training);
    const nn::Values inputs = nn::add_inputs(graph, head.task, {{"batch", kBatch}});
    const nn::Training training = head.task.training(context, inputs);
    for (const auto& [name, value] : head.task.inference(context, inputs)) graph.add_output(name, value);
    Value* loss = ops::divide(training.objectives[0].sum, training.objectives[0].weight);
    graph.add_output("loss", ops::reshape(loss, {1}));
    add_gradient_outputs(graph, context, loss);
    CompileOptions options;
    options.pipeline.verify = true;
    const auto executable = compile(graph, device, options);
    executable->bind(formula_variables(device, context.variables()));
    const Feeds outputs = executable->run(feeds);
    // 1e-5 are a hundred and sixty roundings to fp32, of sums of a few layers of numbers of about one.
    const Tolerance tolerance{.absolute = 1e-5, .relative = 1e-5};
    expect_close(outputs.at("loss"), expected("loss"), tolerance, "loss");
    for (const auto& [own, theirs] : head.served)
      expect_close(outputs.at(own), expected(theirs), tolerance, own);
    for (const nn::Variable& variable : context.variables()) {
      const std::string key = "gradient." + variable.name;
      const std::vector<double> own = outputs.at(key).to_doubles();
      const std::vector<double> theirs = expected(key);
      // What moves all scores of a softmax alike has no gradient: the key's bias, and that of the places of
      // answers.
      if (theirs[1] < 1e-12) {
        EXPECT_LT(digest(own)[1], 1e-5) << key;
      } else {
        EXPECT_TRUE(digest_is_close(own, theirs)) << device->description().name << " " << key;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
