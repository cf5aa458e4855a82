// Texts in one list of tokens beside the same texts in rows with padding.
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "tessera/compile/feeds.h"
#include "tessera/models/bert.h"
#include "tessera/nn/layers.h"

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 10;  // of a row
constexpr int64_t kTexts = 4;
constexpr int64_t kMasked = 2;  // place in each text
const models::BertConfig kConfig{
    .vocabulary = 37, .width = 16, .layers = 2, .heads = 2, .inner = 24, .positions = 12, .dropout = 0};

Feeds texts() {
  return {
      {"tokens",
       models::formula::labels("tokens", kTexts * kTokens, kConfig.vocabulary).reshape({kTexts, kTokens})},
      {"segments", models::formula::labels("segments", kTexts * kTokens, 2).reshape({kTexts, kTokens})},
      {"lengths", Tensor::from<int32_t>({kTexts}, {7, 3, 10, 4})},
      {"labels", models::formula::labels("labels", kTexts, kConfig.vocabulary)},
      {"follows", models::formula::labels("follows", kTexts, 2)}};
}

// What was encoded of one place of each text, [texts, width].
using Place = std::function<Value*(int64_t place)>;

Place encoded_rows(nn::Context& context, std::map<std::string, Value*>& in) {
  Value* encoded = models::bert_encoder(
      context, kConfig, {.tokens = in["tokens"], .segments = in["segments"], .lengths = in["lengths"]});
  return [encoded](int64_t place) {
    return ops::reshape(ops::slice(encoded, {0, place, 0}, {kTexts, place + 1, kConfig.width}),
                        {kTexts, kConfig.width});
  };
}

Place encoded_list(nn::Context& context, std::map<std::string, Value*>& in, int64_t size) {
  const nn::TokenList list(in["lengths"], kTokens, size);
  Value* encoded = models::bert_encoder(
      context, kConfig,
      {.tokens = list.to_list(in["tokens"]), .segments = list.to_list(in["segments"]), .list = &list});
  EXPECT_EQ(encoded->shape(), (SymbolicShape{1, size, kConfig.width}));
  Value* tokens = ops::reshape(encoded, {size, kConfig.width});
  return [tokens, places = list.places()](int64_t place) {
    return ops::gather(tokens, ops::reshape(ops::slice(places, {0, place}, {kTexts, place + 1}), {kTexts}));
  };
}

// "words", "follows", "loss" and "gradient.NAME"; of rows without a size.
Feeds outputs_of(std::optional<int64_t> size, const std::shared_ptr<Device>& device) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  std::map<std::string, Value*> in;
  const Feeds feeds = texts();
  for (const auto& [name, tensor] : feeds)
    in[name] = graph.add_input(InputRole::input, name, {tensor.data_type(), to_symbolic(tensor.shape())});
  const Place at = size ? encoded_list(context, in, *size) : encoded_rows(context, in);
  Value* words = models::bert_token_logits(context, kConfig, at(kMasked));
  Value* follows = models::bert_next_sentence(context, kConfig, models::bert_pooled(context, kConfig, at(0)));
  Value* loss = ops::add(ops::reduce_mean(ops::cross_entropy(words, in["labels"]), {}),
                         ops::reduce_mean(ops::cross_entropy(follows, in["follows"]), {}));
  graph.add_output("words", words);
  graph.add_output("follows", follows);
  graph.add_output("loss", ops::reshape(loss, {1}));
  add_gradient_outputs(graph, context, loss);
  const auto executable = compile(graph, device, {});
  executable->bind(formula_variables(device, context.variables()));
  return executable->run(feeds);
}

TEST(BertUnpadding, ChangesNeitherOutputsNorGradients) {
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& device : devices) {
    const Feeds rows = outputs_of(std::nullopt, device);
    for (const int64_t size : {24, 29, 40}) {  // no place left over, some, as many as rows have
      const Feeds list = outputs_of(size, device);
      ASSERT_EQ(rows.size(), list.size());
      // Sums of other lengths, of numbers of about one.
      for (const auto& [name, tensor] : rows)
        expect_close(list.at(name), tensor.to_doubles(), {.absolute = 1e-5, .relative = 1e-5}, name);
    }
  }
}

// Queries, keys and values in one product, three more in each layer: none has padding.
TEST(BertUnpadding, MultipliesTheListAlone) {
  constexpr int64_t kSize = 24;
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  std::map<std::string, Value*> in;
  for (const auto& [name, tensor] : texts())
    in[name] = graph.add_input(InputRole::input, name, {tensor.data_type(), to_symbolic(tensor.shape())});
  encoded_list(context, in, kSize);
  int64_t products = 0;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() != "matmul") continue;
    ++products;
    EXPECT_EQ(node->output()->shape()[1], Dimension(kSize)) << node->name();
  }
  EXPECT_EQ(products, 4 * kConfig.layers);
}

TEST(BertUnpadding, HasAsManyPositionsAsTheLongestTextNeeds) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  Value* lengths = graph.add_input(InputRole::input, "lengths", {DataType::int32, {3}});
  const nn::TokenList list(lengths, 13, 20);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 20}});
  EXPECT_ERROR(models::bert_encoder(context, kConfig, {.tokens = tokens, .list = &list}),
               ErrorCode::invalid_argument, "13 tokens", "12 positions");
}

}  // namespace
}  // namespace tessera::testing
