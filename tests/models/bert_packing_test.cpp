// Rows of several texts beside the same texts in rows of their own.
#include <gtest/gtest.h>

#include "tessera/compile/feeds.h"
#include "tessera/models/bert.h"
#include "tessera/nn/layers.h"

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/devices.h"

namespace tessera::testing {
namespace {

const models::BertConfig kConfig{
    .vocabulary = 37, .width = 16, .layers = 2, .heads = 2, .inner = 24, .positions = 12, .dropout = 0};
const std::vector<int64_t> kLengths{10, 7, 4};

// Where each text lies in rows of one length.
struct Place {
  int64_t row = 0;
  int64_t begin = 0;
};
struct Layout {
  int64_t rows = 0;
  int64_t tokens = 0;
  std::vector<Place> places;
};
const Layout kSingle{.rows = 3, .tokens = 10, .places = {{0, 0}, {1, 0}, {2, 0}}};
// With other texts before and after them, and padding of another length.
const Layout kPacked{.rows = 2, .tokens = 12, .places = {{1, 0}, {0, 4}, {0, 0}}};

Feeds feeds_of(const Layout& layout) {
  const Shape shape{layout.rows, layout.tokens};
  Feeds feeds;
  for (const char* name : {"tokens", "segments", "texts", "positions"})
    feeds.emplace(name, Tensor(DataType::int32, shape));
  Tensor firsts(DataType::int32, {std::ssize(kLengths)});
  Tensor masked(DataType::int32, {std::ssize(kLengths)});
  for (size_t text = 0; text < kLengths.size(); ++text) {
    const std::string name = "packing." + std::to_string(text);
    const auto [row, begin] = layout.places[text];
    const int64_t first = row * layout.tokens + begin;
    const Tensor tokens = models::formula::labels(name, kLengths[text], kConfig.vocabulary);
    for (int64_t i = 0; i < kLengths[text]; ++i) {
      feeds.at("tokens").set(first + i, tokens.at(i));
      feeds.at("segments").set(first + i, i > 2 ? 1 : 0);
      feeds.at("texts").set(first + i, static_cast<double>(begin == 0 ? 1 : 2));
      feeds.at("positions").set(first + i, static_cast<double>(i));
    }
    firsts.set(static_cast<int64_t>(text), static_cast<double>(first));
    masked.set(static_cast<int64_t>(text), static_cast<double>(first + 2));
  }
  feeds.emplace("firsts", firsts);
  feeds.emplace("masked", masked);
  feeds.emplace("labels", models::formula::labels("packing.labels", 3, kConfig.vocabulary));
  feeds.emplace("follows", models::formula::labels("packing.follows", 3, 2));
  return feeds;
}

// "words", "follows", "loss" and "gradient.NAME".
Feeds outputs_of(const Layout& layout, const std::shared_ptr<Device>& device) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  std::map<std::string, Value*> in;
  const Feeds feeds = feeds_of(layout);
  for (const auto& [name, tensor] : feeds)
    in[name] = graph.add_input(InputRole::input, name, {tensor.data_type(), to_symbolic(tensor.shape())});
  Value* encoded = models::bert_encoder(context, kConfig,
                                        {.tokens = in["tokens"],
                                         .segments = in["segments"],
                                         .texts = in["texts"],
                                         .positions = in["positions"]});
  Value* all = ops::reshape(encoded, {layout.rows * layout.tokens, kConfig.width});
  Value* words = models::bert_token_logits(context, kConfig, ops::gather(all, in["masked"]));
  Value* pooled = models::bert_pooled(context, kConfig, ops::gather(all, in["firsts"]));
  Value* follows = models::bert_next_sentence(context, kConfig, pooled);
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

TEST(BertPacking, ChangesNeitherOutputsNorGradients) {
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& device : devices) {
    const Feeds single = outputs_of(kSingle, device);
    const Feeds packed = outputs_of(kPacked, device);
    ASSERT_EQ(single.size(), packed.size());
    // Sums of other lengths, of numbers of about one.
    for (const auto& [name, tensor] : single)
      expect_close(packed.at(name), tensor.to_doubles(), {.absolute = 1e-5, .relative = 1e-5}, name);
  }
}

}  // namespace
}  // namespace tessera::testing
