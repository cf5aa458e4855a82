// Decoders in the files of transformers (tests/golden/decoder.py).
#include "tessera/models/decoder_files.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/models/formula.h"

#include "models/small_decoders.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using models::DecoderConfig;
using nlohmann::json;
using Weights = std::map<std::string, Tensor>;

// What save_pretrained writes: "config", and "files", the names and shapes.
json golden_files(const std::string& name) {
  return json::parse(open_golden("decoder").metadata().at(name));
}

Weights small_weights(const DecoderConfig& config) {
  return models::formula::weights(models::decoder_variables(config));
}

void expect_same(const Weights& loaded, const Weights& expected) {
  EXPECT_EQ(loaded.size(), expected.size());
  for (const auto& [name, tensor] : loaded) EXPECT_TRUE(tensor.identical(expected.at(name))) << name;
}

TEST(DecoderFiles, HoldWhatTransformersWrites) {
  const TemporaryFolder folder;
  for (const auto& [name, config] : small_decoders()) {
    models::save_decoder(folder / name, small_weights(config), config);
    const data::SafetensorsFile file = data::SafetensorsFile::open(folder / name);
    EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
    const json golden = golden_files(name).at("files");
    EXPECT_EQ(file.entries().size(), golden.size());
    for (const auto& [tensor, shape] : golden.items()) {
      ASSERT_TRUE(file.contains(tensor)) << tensor;
      EXPECT_EQ(file.entries().at(tensor).shape, shape.get<Shape>()) << tensor;
    }
    expect_same(models::load_decoder(folder / name, config), small_weights(config));
  }
}

TEST(DecoderConfigFile, IsWhatTransformersWrites) {
  const TemporaryFolder folder;
  const auto path = folder / "config.json";
  for (const auto& [name, config] : small_decoders()) {
    write_file(path, golden_files(name).at("config").dump());
    EXPECT_EQ(models::read_decoder_config(path), config) << name;
    models::write_decoder_config(path, config);
    EXPECT_EQ(models::read_decoder_config(path), config) << name;
    // Each key that it writes says what transformers says.
    const json own = json::parse(read_text_file(path)), golden = golden_files(name).at("config");
    for (const auto& [key, value] : own.items()) {
      if (golden.contains(key) && !value.is_null() && !golden.at(key).is_null()) {
        EXPECT_EQ(value, golden.at(key)) << name << " " << key;
      }
    }
  }
}

TEST(DecoderConfigFile, SaysWhatIsNotSupported) {
  const TemporaryFolder folder;
  const auto path = folder / "config.json";
  const auto expect = [&](const char* network, const char* key, const json& value, ErrorCode code) {
    json changed = golden_files(network).at("config");
    changed[key] = value;
    write_file(path, changed.dump());
    EXPECT_ERROR(models::read_decoder_config(path), code, "config.json", key);
  };
  expect("gpt2", "model_type", "mamba", ErrorCode::unsupported);
  expect("gpt2", "model_type", nullptr, ErrorCode::unsupported);
  expect("gpt2", "activation_function", "relu", ErrorCode::unsupported);
  expect("gpt2", "scale_attn_by_inverse_layer_idx", true, ErrorCode::unsupported);
  expect("gpt2", "n_embd", nullptr, ErrorCode::invalid_file);
  expect("gpt2", "n_layer", 0, ErrorCode::invalid_file);
  expect("gpt2", "tie_word_embeddings", "yes", ErrorCode::invalid_file);
  expect("llama", "hidden_act", "gelu", ErrorCode::unsupported);
  expect("llama", "rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}, ErrorCode::unsupported);
  expect("llama", "rope_scaling", {{"type", "linear"}, {"factor", 2.0}}, ErrorCode::unsupported);
  expect("llama", "rope_scaling", "linear", ErrorCode::invalid_file);
  expect("llama", "rope_parameters", {{"partial_rotary_factor", 0.5}}, ErrorCode::unsupported);
  expect("llama", "rope_scaling", {{"rope_type", "llama3"}, {"factor", 2.0}}, ErrorCode::invalid_file);
  expect("llama", "rms_norm_eps", "small", ErrorCode::invalid_file);
  write_file(path, "[]");
  EXPECT_ERROR(models::read_decoder_config(path), ErrorCode::invalid_file, "no JSON object");
  EXPECT_ERROR(models::read_decoder_config(folder / "none"), ErrorCode::io, "none");
}

// A small network's file, changed.
class DecoderFileFaults : public ::testing::Test {
 protected:
  void begin(size_t network) {
    config_ = small_decoders().at(network).config;
    models::save_decoder(path(), small_weights(config_), config_);
    tensors_ = data::SafetensorsFile::open(path()).read_all();
  }
  std::filesystem::path path() const { return folder_ / "model.safetensors"; }
  Weights load() {
    data::write_safetensors(path(), tensors_);
    return models::load_decoder(folder_.path(), config_);
  }
  void without(const std::string& scope) {
    Weights renamed;
    for (const auto& [name, tensor] : tensors_)
      renamed[name.starts_with(scope) ? name.substr(scope.size()) : name] = tensor;
    tensors_ = renamed;
  }

  TemporaryFolder folder_;
  DecoderConfig config_;
  Weights tensors_;
};

TEST_F(DecoderFileFaults, AreNamed) {
  begin(0);
  const std::string key = "transformer.h.1.mlp.c_fc.weight";
  const Tensor right = tensors_.at(key);
  tensors_.erase(key);
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "model.safetensors", key, "missing");
  // As a linear layer has it.
  tensors_[key] = Tensor(DataType::fp32, {64, 16});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, key, "[64, 16]", "[16, 64]");
  tensors_[key] = right;
  tensors_["transformer.h.2.ln_1.bias"] = Tensor(DataType::fp32, {16});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "transformer.h.2.ln_1.bias", "no tensor");
  tensors_.erase("transformer.h.2.ln_1.bias");
  tensors_["lm_head.weight"] = Tensor(DataType::fp32, {29, 16});
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "lm_head.weight", "not equal", "transformer.wte.weight");
  tensors_["lm_head.weight"] = tensors_.at("transformer.wte.weight");
  expect_same(load(), small_weights(config_));
  tensors_["wte.weight"] = tensors_.at("transformer.wte.weight");
  EXPECT_ERROR(load(), ErrorCode::invalid_file, "wte.weight", "one tensor");
}

// The file of openai-community/gpt2 has its names without a scope, and masks.
TEST_F(DecoderFileFaults, AreNotWhatOlderFilesHold) {
  begin(0);
  without("transformer.");
  tensors_["h.0.attn.bias"] = Tensor(DataType::fp32, {1, 1, 12, 12});
  tensors_["h.0.attn.masked_bias"] = Tensor(DataType::fp32, {});
  expect_same(load(), small_weights(config_));
  begin(2);
  without("model.");
  tensors_["layers.0.self_attn.rotary_emb.inv_freq"] = Tensor(DataType::fp32, {2});
  expect_same(load(), small_weights(config_));
  for (auto& [name, tensor] : tensors_) tensor = tensor.cast(DataType::bf16);
  for (const auto& [name, tensor] : load()) {
    EXPECT_EQ(tensor.data_type(), DataType::fp32);
    EXPECT_TRUE(tensor.identical(small_weights(config_).at(name).cast(DataType::bf16).cast(DataType::fp32)))
        << name;
  }
}

}  // namespace
}  // namespace tessera::testing
