// BERT beside transformers' (tests/golden/bert.py), and its files.
#include "tessera/models/bert.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/compile/feeds.h"
#include "tessera/models/bert_files.h"
#include "tessera/nn/layers.h"

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using models::BertConfig;
using models::BertForm;
using Weights = std::map<std::string, Tensor>;

constexpr int64_t kBatch = 3;
constexpr int64_t kTokens = 10;
constexpr int64_t kPlaces = 2;

BertConfig small_config() {
  return {.vocabulary = 37, .width = 16, .layers = 2, .heads = 2, .inner = 24, .positions = 12, .dropout = 0};
}

Tensor numbers(const char* name, const Shape& shape, int64_t classes) {
  return models::formula::labels(name, element_count(shape), classes).reshape(shape);
}

Feeds golden_feeds() {
  return {{"tokens", numbers("bert.tokens", {kBatch, kTokens}, small_config().vocabulary)},
          {"segments", numbers("bert.segments", {kBatch, kTokens}, 2)},
          {"lengths", Tensor::from<int32_t>({kBatch}, {10, 7, 4})},
          // Of all rows' tokens, one row after another.
          {"places", Tensor::from<int32_t>({kBatch, kPlaces}, {1, 3, 10, 16, 22, 23})},
          {"labels", numbers("bert.labels", {kBatch * kPlaces}, small_config().vocabulary)},
          {"next", numbers("bert.next", {kBatch}, 2)}};
}

Value* mean_cross_entropy(Value* logits, Value* labels) {
  return ops::reduce_mean(ops::cross_entropy(logits, labels), {});
}

// Outputs "encoded", "pooled", "logits", "next_sentence", "loss" by what is decoded at the masked places
// alone, and "gradient.NAME".
struct Pass {
  Graph graph;
  std::vector<nn::Variable> variables;
};
std::unique_ptr<Pass> golden_pass() {
  auto pass = std::make_unique<Pass>();
  Graph& graph = pass->graph;
  nn::Context context(graph, nn::Mode::training);
  const BertConfig config = small_config();
  std::map<std::string, Value*> in;
  for (const auto& [name, tensor] : golden_feeds())
    in[name] = graph.add_input(InputRole::input, name, {tensor.data_type(), to_symbolic(tensor.shape())});
  Value* encoded = models::bert_encoder(
      context, config, {.tokens = in["tokens"], .segments = in["segments"], .lengths = in["lengths"]});
  Value* pooled = models::bert_pooler(context, config, encoded);
  Value* masked = ops::gather(ops::reshape(encoded, {kBatch * kTokens, config.width}), in["places"]);
  Value* masked_logits = models::bert_token_logits(context, config, masked);
  Value* next = models::bert_next_sentence(context, config, pooled);
  Value* loss = ops::add(
      mean_cross_entropy(ops::reshape(masked_logits, {kBatch * kPlaces, config.vocabulary}), in["labels"]),
      mean_cross_entropy(next, in["next"]));
  graph.add_output("encoded", encoded);
  graph.add_output("pooled", pooled);
  graph.add_output("logits", models::bert_token_logits(context, config, encoded));
  graph.add_output("next_sentence", next);
  graph.add_output("loss", ops::reshape(loss, {1}));
  add_gradient_outputs(graph, context, loss);
  pass->variables = context.variables();
  return pass;
}

TEST(Bert, GivesTransformersOutputsLossAndGradientsOnEachDevice) {
  const data::SafetensorsFile golden = open_golden("bert");
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& device : devices) {
    const std::unique_ptr<Pass> pass = golden_pass();
    CompileOptions options;
    options.pipeline.verify = true;
    const auto executable = compile(pass->graph, device, options);
    executable->bind(formula_variables(device, pass->variables));
    const Feeds outputs = executable->run(golden_feeds());
    // 1e-5 are a hundred and sixty roundings to fp32, of sums of a few layers of numbers of about one.
    for (const char* name : {"encoded", "pooled", "logits", "next_sentence", "loss"})
      expect_close(outputs.at(name), golden.read(name).to_doubles(), {.absolute = 1e-5, .relative = 1e-5},
                   name);
    for (const nn::Variable& variable : pass->variables) {
      const std::string key = "gradient." + variable.name;
      const std::vector<double> expected = golden.read(key).to_doubles();
      const std::vector<double> own = outputs.at(key).to_doubles();
      if (key.ends_with("self.key.bias")) {  // zero: it moves all scores of a query alike
        EXPECT_LT(digest(own)[1], 1e-5) << key;
        EXPECT_LT(expected[1], 1e-12) << key;
      } else {
        EXPECT_TRUE(digest_is_close(own, expected)) << device->description().name << " " << key;
      }
    }
  }
}

// Rows of which nothing is shown, such as those that only fill a batch, give numbers all the same.
TEST(Bert, StaysFiniteWhereNothingIsShown) {
  const std::unique_ptr<Pass> pass = golden_pass();
  const auto executable = compile(pass->graph, Device::cpu(), {});
  executable->bind(formula_variables(Device::cpu(), pass->variables));
  Feeds feeds = golden_feeds();
  feeds["lengths"] = Tensor::from<int32_t>({kBatch}, {10, 0, 4});
  const Feeds outputs = executable->run(feeds);
  for (const double value : outputs.at("logits").to_doubles()) ASSERT_TRUE(std::isfinite(value));
  for (const double value : outputs.at("gradient.bert.pooler.dense.weight").to_doubles())
    ASSERT_TRUE(std::isfinite(value));
}

TEST(Bert, DecodesByTheTableOfWordsThatItReads) {
  const std::unique_ptr<Pass> pass = golden_pass();
  const auto tables = std::count_if(pass->variables.begin(), pass->variables.end(), [](const auto& one) {
    return one.shape == Shape{37, 16};
  });
  EXPECT_EQ(tables, 1);
}

TEST(Bert, HasTheSizesOfItsPapers) {
  // Devlin et al. 2019 say 110 and 340 million, Turc et al. 2019 4.4 million, of encoder and pooler.
  const auto count = [](const BertConfig& config) {
    return models::parameter_count(models::bert_variables(config, BertForm::encoder));
  };
  EXPECT_EQ(count(models::bert_base()), 109482240);
  EXPECT_EQ(count(models::bert_large()), 335141888);
  EXPECT_EQ(count(models::bert_tiny()), 4385920);
}

TEST(Bert, RefusesWhatHasNoHeadsOrPositions) {
  BertConfig config = small_config();
  config.heads = 3;
  EXPECT_ERROR(models::bert_variables(config), ErrorCode::invalid_argument, "width of 16", "3 heads");
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 13}});
  EXPECT_ERROR(models::bert_encoder(context, small_config(), {.tokens = tokens}), ErrorCode::invalid_argument,
               "13 tokens", "12 positions");
}

Weights small_weights() {
  return models::formula::weights(models::bert_variables(small_config()));
}

TEST(BertFiles, HoldWhatTransformersWrites) {
  const TemporaryFolder folder;
  const auto golden = nlohmann::json::parse(open_golden("bert").metadata().at("files"));
  for (const auto& [kind, form] :
       {std::pair("BertForPreTraining", BertForm::pretraining), {"BertModel", BertForm::encoder}}) {
    models::save_bert(folder / kind, small_weights(), small_config(), form);
    const data::SafetensorsFile file = data::SafetensorsFile::open(folder / kind);
    EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
    EXPECT_EQ(file.entries().size(), golden.at(kind).size());
    for (const auto& [name, shape] : golden.at(kind).items()) {
      ASSERT_TRUE(file.contains(name)) << name;
      EXPECT_EQ(file.entries().at(name).shape, shape.get<Shape>()) << name;
    }
  }
}

TEST(BertFiles, LoadAndSaveTheSameBytes) {
  const TemporaryFolder folder;
  for (const BertForm form : {BertForm::pretraining, BertForm::encoder}) {
    models::save_bert(folder / "first", small_weights(), small_config(), form);
    const Weights loaded = models::load_bert(folder / "first", small_config(), form);
    EXPECT_EQ(loaded.size(), models::bert_variables(small_config(), form).size());
    for (const auto& [name, tensor] : loaded) EXPECT_TRUE(tensor.identical(small_weights().at(name))) << name;
    models::save_bert(folder / "second", loaded, small_config(), form);
    EXPECT_EQ(read_text_file(folder / "first"), read_text_file(folder / "second"));
  }
}

// A file of the small network, changed.
class BertFileFaults : public ::testing::Test {
 protected:
  BertFileFaults() {
    models::save_bert(path(), small_weights(), small_config());
    tensors_ = data::SafetensorsFile::open(path()).read_all();
  }
  std::filesystem::path path() const { return folder_ / "model.safetensors"; }
  Weights load() {
    data::write_safetensors(path(), tensors_);
    return models::load_bert(path(), small_config());
  }
  void rename(const std::string& from, const std::string& to) {
    tensors_[to] = tensors_.at(from);
    tensors_.erase(from);
  }

  TemporaryFolder folder_;
  Weights tensors_;
};

TEST_F(BertFileFaults, AreNamed) {
  const std::string key = "bert.encoder.layer.1.attention.self.key.weight";
  const Tensor right = tensors_.at(key);
  tensors_.erase(key);
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "model.safetensors", key, "missing");
  tensors_[key] = Tensor(DataType::fp32, {16, 15});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, key, "[16, 15]", "[16, 16]");
  tensors_[key] = right;
  tensors_["bert.encoder.layer.2.output.dense.bias"] = Tensor(DataType::fp32, {16});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "bert.encoder.layer.2.output.dense.bias", "no tensor");
  tensors_.erase("bert.encoder.layer.2.output.dense.bias");
  EXPECT_EQ(load().size(), small_weights().size());
  EXPECT_ERROR(models::load_bert(path(), small_config(), BertForm::encoder), ErrorCode::invalid_file,
               "cls.predictions.bias", "no tensor");
  Weights incomplete = small_weights();
  incomplete.erase(key);
  EXPECT_ERROR(models::save_bert(path(), incomplete, small_config()), ErrorCode::invalid_argument, key);
  incomplete[key] = Tensor(DataType::fp32, {16});
  EXPECT_ERROR(models::save_bert(path(), incomplete, small_config()), ErrorCode::invalid_argument, key,
               "[16]");
}

TEST_F(BertFileFaults, AreNotWhatOlderFilesHold) {
  rename("bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma");
  rename("cls.predictions.transform.LayerNorm.bias", "cls.predictions.transform.LayerNorm.beta");
  tensors_["bert.embeddings.position_ids"] = Tensor(DataType::int64, {1, 12});
  tensors_["cls.predictions.decoder.weight"] = tensors_.at("bert.embeddings.word_embeddings.weight");
  tensors_["cls.predictions.decoder.bias"] = tensors_.at("cls.predictions.bias");
  const Weights loaded = load();
  EXPECT_EQ(loaded.size(), small_weights().size());
  for (const auto& [name, tensor] : loaded) EXPECT_TRUE(tensor.identical(small_weights().at(name))) << name;

  tensors_["cls.predictions.decoder.weight"] = Tensor(DataType::fp32, {37, 16});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "cls.predictions.decoder.weight", "not equal",
               "word_embeddings");
  tensors_.erase("cls.predictions.decoder.weight");
  tensors_["bert.embeddings.LayerNorm.weight"] = Tensor(DataType::fp32, {16});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "LayerNorm.gamma", "LayerNorm.weight", "one tensor");
}

TEST_F(BertFileFaults, AreNoOtherFloatingTypes) {
  for (auto& [name, tensor] : tensors_) tensor = tensor.cast(DataType::bf16);
  const Weights loaded = load();
  const Tensor& bias = loaded.at("cls.predictions.bias");
  EXPECT_EQ(bias.data_type(), DataType::fp32);
  EXPECT_TRUE(
      bias.identical(small_weights().at("cls.predictions.bias").cast(DataType::bf16).cast(DataType::fp32)));
}

TEST(BertConfigFile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  BertConfig dropping = models::bert_large();
  dropping.attention_dropout = 0.25;
  for (const BertConfig& config : {dropping, small_config(), models::bert_large()}) {
    models::write_bert_config(folder / "config.json", config);
    EXPECT_EQ(models::read_bert_config(folder / "config.json"), config);
  }
  const auto json = nlohmann::json::parse(read_text_file(folder / "config.json"));
  EXPECT_EQ(json.at("architectures"), nlohmann::json({"BertForPreTraining"}));
}

TEST(BertConfigFile, SaysWhatIsNotSupported) {
  const TemporaryFolder folder;
  const auto path = folder / "config.json";
  models::write_bert_config(path, small_config(), BertForm::encoder);
  const auto json = nlohmann::json::parse(read_text_file(path));
  const auto expect = [&](const char* key, const nlohmann::json& value, ErrorCode code) {
    nlohmann::json changed = json;
    if (value.is_null()) {
      changed.erase(key);
    } else {
      changed[key] = value;
    }
    write_file(path, changed.dump());
    EXPECT_ERROR(models::read_bert_config(path), code, "config.json", key);
  };
  expect("model_type", "roberta", ErrorCode::unsupported);
  expect("hidden_act", "relu", ErrorCode::unsupported);
  expect("position_embedding_type", "relative_key", ErrorCode::unsupported);
  expect("tie_word_embeddings", false, ErrorCode::unsupported);
  expect("hidden_size", nullptr, ErrorCode::invalid_file);
  expect("hidden_size", 0, ErrorCode::invalid_file);
  expect("hidden_size", "wide", ErrorCode::invalid_file);
  expect("layer_norm_eps", "small", ErrorCode::invalid_file);
  write_file(path, "[]");
  EXPECT_ERROR(models::read_bert_config(path), ErrorCode::invalid_file, "no JSON object");
  EXPECT_ERROR(models::read_bert_config(folder / "none"), ErrorCode::io, "none");
}

}  // namespace
}  // namespace tessera::testing
