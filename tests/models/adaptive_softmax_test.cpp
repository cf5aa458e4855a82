// Beside torch.nn.AdaptiveLogSoftmaxWithLoss (tests/golden/transformer_xl.py).
#include "tessera/nn/adaptive_softmax.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"
#include "tessera/models/formula.h"
#include "tessera/passes/differentiate.h"
#include "tessera/train/checkpoint.h"

#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

namespace formula = models::formula;

constexpr int64_t kRows = 12, kWidth = 16, kTokens = 29;
const nn::AdaptiveVocabulary kVocabulary{.tokens = kTokens, .cutoffs = {8, 17}, .narrowing = 2};

Tensor golden_input() {
  Tensor x(DataType::fp32, {kRows, kWidth});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, formula::uniform("adaptive.x", static_cast<uint64_t>(i)));
  return x;
}

std::vector<std::shared_ptr<Device>> devices_and_reference() {
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  return devices;
}

// 1e-5 are a hundred and sixty roundings of numbers of about one.
constexpr Tolerance kClose{.absolute = 1e-5, .relative = 1e-5};

// Losses of rows of x, logarithms of their probabilities, and the gradients of the losses' mean.
struct Losses {
  Graph graph;
  std::vector<nn::Variable> variables;
  std::vector<Value*> sources;
};

std::unique_ptr<Losses> losses_of(int64_t rows, const std::vector<int64_t>& most_labels = {}) {
  auto made = std::make_unique<Losses>();
  Graph& graph = made->graph;
  nn::Context context(graph, nn::Mode::training);
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {rows, kWidth}});
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::int32, {rows}});
  const nn::AdaptiveWeights weights = nn::adaptive_weights(context, kVocabulary, kWidth, true);
  Value* losses = nn::adaptive_losses(kVocabulary, weights, x, labels, most_labels);
  graph.add_output("losses", losses);
  graph.add_output("log_probabilities", nn::adaptive_log_probabilities(kVocabulary, weights, x));
  made->variables = context.variables();
  made->sources = {x};
  for (const nn::Variable& variable : made->variables)
    made->sources.push_back(graph.find_input(variable.name));
  const std::vector<Value*> gradients = differentiate(graph, ops::reduce_mean(losses), made->sources);
  for (size_t i = 0; i < gradients.size(); ++i)
    graph.add_output("gradient." + made->sources[i]->name(), gradients[i]);
  return made;
}

Feeds run(const Losses& losses, const std::shared_ptr<Device>& device, const Tensor& x,
          const Tensor& labels) {
  const auto executable = compile(losses.graph, device);
  const auto variables = std::make_shared<Variables>(device);
  for (const auto& [name, value] : formula::weights(losses.variables)) variables->set(name, value);
  executable->bind(variables);
  return executable->run({{"x", x}, {"labels", labels}});
}

// For each of them rows are picked by two lists.
int64_t clusters_of_picked_rows(const Losses& losses) {
  return std::ranges::count_if(losses.graph.nodes(),
                               [](const auto& node) { return node->operator_name() == "set_rows"; }) /
         2;
}

std::vector<int64_t> labels_of_clusters(const Tensor& labels) {
  std::vector<int64_t> counts(2, 0);
  for (const int32_t label : labels.data<int32_t>()) {
    if (label >= kVocabulary.cutoffs[0]) ++counts[label < kVocabulary.cutoffs[1] ? 0 : 1];
  }
  return counts;
}

TEST(AdaptiveSoftmax, GivesTorchsLossesProbabilitiesAndGradientsOnEachDevice) {
  const Tensor labels = formula::labels("adaptive.labels", kRows, kTokens);
  const data::SafetensorsFile golden = open_golden("transformer_xl");
  for (const bool bounded : {false, true}) {
    const auto losses = losses_of(kRows, bounded ? labels_of_clusters(labels) : std::vector<int64_t>());
    // The other cluster has most of the labels.
    EXPECT_EQ(clusters_of_picked_rows(*losses), bounded ? 1 : 0);
    for (const auto& device : devices_and_reference()) {
      SCOPED_TRACE(device->description().name);
      const Feeds outputs = run(*losses, device, golden_input(), labels);
      for (const char* output : {"losses", "log_probabilities"})
        expect_close(outputs.at(output), golden.read(std::string("softmax/") + output).to_doubles(), kClose,
                     output);
      for (const Value* source : losses->sources) {
        const std::string key = "gradient." + source->name();
        EXPECT_TRUE(digest_is_close(outputs.at(key).to_doubles(), golden.read("softmax/" + key).to_doubles()))
            << key;
      }
    }
  }
}

// 48 labels in mixed order: so many of each cluster, two that are ignored, and those of the head.
Tensor mixed_labels(int64_t first, int64_t second) {
  Tensor labels(DataType::int32, {48});
  for (int64_t i = 0; i < 48; ++i) {
    const int64_t place = i * 29 % 48;
    const int64_t drawn = i * 7;
    const int64_t cluster = i < first ? 8 + drawn % 9 : i < first + second ? 17 + drawn % 12 : drawn % 8;
    labels.set(place, static_cast<double>(i >= 46 ? -100 : cluster));
  }
  return labels;
}

Tensor drawn_rows() {
  Tensor x(DataType::fp32, {48, kWidth});
  for (int64_t i = 0; i < x.size(); ++i)
    x.set(i, formula::uniform("adaptive.rows", static_cast<uint64_t>(i)));
  return x;
}

// Batches that fill the room of a cluster, leave some of it, or have no label of it.
TEST(AdaptiveSoftmax, LosesTheSameWhereClustersAreComputedForTheirOwnRowsAlone) {
  const auto all = losses_of(48), own = losses_of(48, {16, 6});
  EXPECT_EQ(clusters_of_picked_rows(*own), 2);
  for (const auto& device : devices_and_reference()) {
    for (const auto& [first, second] : {std::pair{16, 6}, {3, 1}, {0, 5}, {11, 0}, {0, 0}}) {
      SCOPED_TRACE(device->description().name + " " + std::to_string(first) + " " + std::to_string(second));
      const Tensor labels = mixed_labels(first, second);
      const Feeds expected = run(*all, device, drawn_rows(), labels);
      const Feeds found = run(*own, device, drawn_rows(), labels);
      // A product of another number of rows may add up in another order.
      for (const auto& [name, tensor] : expected)
        expect_close(found.at(name), tensor.to_doubles(), {.absolute = 1e-6, .relative = 1e-6}, name);
    }
  }
}

TEST(AdaptiveSoftmax, LosesNoNumberWhereAClusterHasMoreLabelsThanWasSaid) {
  const auto all = losses_of(48), own = losses_of(48, {6, 8});
  const Tensor labels = mixed_labels(11, 8);
  for (const auto& device : devices_and_reference()) {
    SCOPED_TRACE(device->description().name);
    const Tensor expected = run(*all, device, drawn_rows(), labels).at("losses");
    const Tensor found = run(*own, device, drawn_rows(), labels).at("losses");
    // There is room for eight.
    int64_t of_first = 0;
    for (int64_t row = 0; row < 48; ++row) {
      const auto label = static_cast<int64_t>(labels.at(row));
      if (label >= 8 && label < 17 && ++of_first > 8) {
        EXPECT_TRUE(std::isnan(found.at(row))) << row;
      } else {
        EXPECT_NEAR(found.at(row), expected.at(row), 1e-6) << row;
      }
    }
    EXPECT_EQ(of_first, 11);
  }
}

// Three quarters of the rows, in eights.
TEST(AdaptiveSoftmax, ComputesAllRowsWhereMostOfThemMayBeAClusters) {
  EXPECT_EQ(clusters_of_picked_rows(*losses_of(48, {24, 32})), 2);
  EXPECT_EQ(clusters_of_picked_rows(*losses_of(48, {32, 33})), 1);
  EXPECT_EQ(clusters_of_picked_rows(*losses_of(48, {0, 48})), 1);
  EXPECT_EQ(clusters_of_picked_rows(*losses_of(10, {0, 1})), 0);
}

TEST(AdaptiveSoftmax, RefusesBoundsThatAreNotOfItsClusters) {
  EXPECT_ERROR(losses_of(48, {1}), ErrorCode::invalid_argument, "1 bounds", "2 clusters");
  EXPECT_ERROR(losses_of(48, {1, -2}), ErrorCode::invalid_argument, "at most -2 labels");
}

// Tables that are tied: what is read is the row of the token's own cluster, widened.
TEST(AdaptiveSoftmax, ReadsEachTokenFromItsCluster) {
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {kTokens}});
  const nn::AdaptiveTables tables(context, "words", kVocabulary, kWidth, 1);
  graph.add_output("y", tables.embedded(tokens));
  const auto variables = std::make_shared<Variables>(Device::cpu());
  train::initialize_variables(*variables, context.variables(), 3);
  const auto executable = compile(graph, Device::cpu());
  executable->bind(variables);
  const Tensor y = executable
                       ->run({{"tokens", Tensor::from<int32_t>({kTokens},
                                                               [] {
                                                                 std::vector<int32_t> all(kTokens);
                                                                 for (size_t i = 0; i < all.size(); ++i)
                                                                   all[i] = static_cast<int32_t>(i);
                                                                 return all;
                                                               }())}})
                       .at("y");
  const std::vector<int64_t> first{0, 8, 17}, end{8, 17, kTokens}, widths{16, 8, 4};
  for (size_t part = 0; part < first.size(); ++part) {
    const std::string number = std::to_string(part);
    const Tensor table = variables->get("words.emb_layers." + number + ".weight");
    ASSERT_EQ(table.shape(), (Shape{end[part] - first[part], widths[part]}));
    for (int64_t token = first[part]; token < end[part]; ++token) {
      for (int64_t w = 0; w < kWidth; ++w) {
        double expected = 0;
        if (part == 0) {
          expected = table.at(token * kWidth + w);
        } else {
          const Tensor projection = variables->get("words.emb_projs." + number);
          for (int64_t i = 0; i < widths[part]; ++i)
            expected += table.at((token - first[part]) * widths[part] + i) * projection.at(i * kWidth + w);
        }
        EXPECT_NEAR(y.at(token * kWidth + w), expected, 1e-5) << token << " " << w;
      }
    }
  }
}

// The probabilities of all tokens add up to one, losses are their negative logarithms, and ignored labels
// count nothing.
TEST(AdaptiveSoftmax, LosesTheLogarithmsOfItsProbabilities) {
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {kRows, kWidth}});
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::int32, {kRows}});
  const nn::AdaptiveWeights weights =
      nn::AdaptiveTables(context, "words", kVocabulary, kWidth, 0.5).weights(context, "crit");
  graph.add_output("losses", nn::adaptive_losses(kVocabulary, weights, x, labels));
  graph.add_output("logarithms", nn::adaptive_log_probabilities(kVocabulary, weights, x));
  const auto variables = std::make_shared<Variables>(Device::cpu());
  train::initialize_variables(*variables, context.variables(), 5);
  const auto executable = compile(graph, Device::cpu());
  executable->bind(variables);
  Tensor came = formula::labels("adaptive.labels", kRows, kTokens);
  came.set(3, -100);
  const Feeds outputs = executable->run({{"x", golden_input()}, {"labels", came}});
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t token = 0; token < kTokens; ++token)
      sum += std::exp(outputs.at("logarithms").at(row * kTokens + token));
    EXPECT_NEAR(sum, 1, 1e-5);
    const auto label = static_cast<int64_t>(came.at(row));
    const double expected = label < 0 ? 0 : -outputs.at("logarithms").at(row * kTokens + label);
    EXPECT_NEAR(outputs.at("losses").at(row), expected, 1e-5);
  }
}

}  // namespace
}  // namespace tessera::testing
