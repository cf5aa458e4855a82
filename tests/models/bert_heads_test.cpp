// The files of BERT's heads of fine tuning, and networks that are started from other files
// (tests/golden/bert_heads.py).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/models/bert.h"
#include "tessera/models/bert_files.h"
#include "tessera/models/formula.h"

#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using models::BertConfig;
using models::BertForm;
using Weights = std::map<std::string, Tensor>;

BertConfig small_config() {
  return {.vocabulary = 37,
          .width = 16,
          .layers = 2,
          .heads = 2,
          .inner = 24,
          .positions = 12,
          .dropout = 0,
          .labels = {"one", "two", "three"}};
}

Weights weights_of(BertForm form) {
  return models::formula::weights(models::bert_variables(small_config(), form));
}

TEST(BertHeads, AreInFilesWhatTransformersWrites) {
  const TemporaryFolder folder;
  const auto golden = nlohmann::json::parse(open_golden("bert_heads").metadata().at("files"));
  for (const auto& [head, form] : {std::pair("classification", BertForm::sequence_classification),
                                   {"tagging", BertForm::token_classification},
                                   {"answering", BertForm::question_answering}}) {
    models::save_bert(folder / head, weights_of(form), small_config(), form);
    const data::SafetensorsFile file = data::SafetensorsFile::open(folder / head);
    EXPECT_EQ(file.entries().size(), golden.at(head).size()) << head;
    for (const auto& [name, shape] : golden.at(head).items()) {
      ASSERT_TRUE(file.contains(name)) << name;
      EXPECT_EQ(file.entries().at(name).shape, shape.get<Shape>()) << name;
    }
    const Weights loaded = models::load_bert(folder / head, small_config(), form);
    for (const auto& [name, tensor] : weights_of(form))
      EXPECT_TRUE(tensor.identical(loaded.at(name))) << name;
  }
}

TEST(BertHeads, StartFromFilesOfOtherHeads) {
  const TemporaryFolder folder;
  const auto start = [&](BertForm stored, BertForm wanted) {
    models::save_bert(folder / "file", weights_of(stored), small_config(), stored);
    Weights loaded = models::load_pretrained_bert(folder / "file", small_config(), wanted);
    for (const auto& [name, tensor] : loaded)
      EXPECT_TRUE(tensor.identical(weights_of(wanted).at(name))) << name;
    std::vector<std::string> missing;
    for (const auto& [name, tensor] : weights_of(wanted)) {
      if (!loaded.contains(name)) missing.push_back(name);
    }
    return missing;
  };
  using Names = std::vector<std::string>;
  const Names classifier{"classifier.bias", "classifier.weight"};
  EXPECT_EQ(start(BertForm::pretraining, BertForm::sequence_classification), classifier);
  EXPECT_EQ(start(BertForm::encoder, BertForm::token_classification), classifier);
  EXPECT_EQ(start(BertForm::pretraining, BertForm::question_answering),
            (Names{"qa_outputs.bias", "qa_outputs.weight"}));
  EXPECT_EQ(
      start(BertForm::question_answering, BertForm::sequence_classification),
      (Names{"bert.pooler.dense.bias", "bert.pooler.dense.weight", "classifier.bias", "classifier.weight"}));
  EXPECT_EQ(start(BertForm::sequence_classification, BertForm::sequence_classification), Names{});
}

TEST(BertHeads, DoNotStartFromWhatIsNoEncoder) {
  const TemporaryFolder folder;
  const auto load = [&](const Weights& weights) {
    data::write_safetensors(folder / "file", weights);
    return models::load_pretrained_bert(folder / "file", small_config(), BertForm::token_classification);
  };
  Weights weights = weights_of(BertForm::token_classification);
  const std::string key = "bert.encoder.layer.0.output.dense.bias";
  weights.erase(key);
  EXPECT_ERROR(load(weights), ErrorCode::invalid_file, key, "missing");
  weights = weights_of(BertForm::token_classification);
  weights["classifier.weight"] = Tensor(DataType::fp32, {2, 16});
  EXPECT_ERROR(load(weights), ErrorCode::invalid_file, "classifier.weight", "[2, 16]", "[3, 16]");
  weights = weights_of(BertForm::token_classification);
  weights["bert.encoder.layer.2.output.dense.bias"] = Tensor(DataType::fp32, {16});
  EXPECT_ERROR(load(weights), ErrorCode::invalid_file, "layer.2.output.dense.bias", "no tensor");
}

TEST(BertHeads, NeedTwoLabels) {
  BertConfig config = small_config();
  config.labels = {"one"};
  EXPECT_ERROR(models::bert_variables(config, BertForm::token_classification), ErrorCode::invalid_argument,
               "two labels", "not 1");
}

TEST(BertHeads, HaveTheirLabelsInConfigFiles) {
  const TemporaryFolder folder;
  const auto path = folder / "config.json";
  models::write_bert_config(path, small_config(), BertForm::token_classification);
  EXPECT_EQ(models::read_bert_config(path), small_config());
  auto json = nlohmann::json::parse(read_text_file(path));
  EXPECT_EQ(json.at("architectures"), nlohmann::json({"BertForTokenClassification"}));
  EXPECT_EQ(json.at("label2id"), (nlohmann::json{{"one", 0}, {"two", 1}, {"three", 2}}));
  json["id2label"] = {{"0", "one"}, {"2", "two"}};
  write_file(path, json.dump());
  EXPECT_ERROR(models::read_bert_config(path), ErrorCode::invalid_file, "config.json", "label 1");
}

}  // namespace
}  // namespace tessera::testing
