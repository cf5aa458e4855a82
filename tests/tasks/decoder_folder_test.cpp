#include "tessera/tasks/decoder_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/data/safetensors.h"
#include "tessera/models/decoder_files.h"
#include "tessera/models/formula.h"
#include "tessera/text/tokenizer.h"

#include "support/compare.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using models::DecoderConfig;

fs::path text_golden(const char* file) {
  return golden_folder().parent_path() / "text" / "golden" / file;
}

// Room for a few tokens more than the tokenizer has.
DecoderConfig small_llama() {
  return {.form = models::DecoderForm::llama,
          .vocabulary = 1210,
          .width = 16,
          .layers = 2,
          .heads = 4,
          .inner = 24,
          .positions = 40,
          .tied = false,
          .key_heads = 2};
}

// As transformers leaves it: weights by the formula in two files, and byte pairs of 1,200 tokens.
class DecoderFolderTest : public ::testing::Test {
 protected:
  DecoderFolderTest() {
    const std::map<std::string, Tensor> weights =
        models::formula::weights(models::decoder_variables(small_llama()));
    models::save_decoder(file("whole"), weights, small_llama());
    std::map<std::string, std::map<std::string, Tensor>> parts;
    nlohmann::json index;
    for (const auto& [name, tensor] : data::SafetensorsFile::open(file("whole")).read_all()) {
      const std::string part =
          name.find("layers.1") == std::string::npos ? "one.safetensors" : "two.safetensors";
      parts[part].emplace(name, tensor);
      index["weight_map"][name] = part;
    }
    for (const auto& [name, tensors] : parts) data::write_safetensors(file(name), tensors);
    write_file(file("model.safetensors.index.json"), index.dump());
    write_config(nlohmann::json::object());
    fs::copy_file(text_golden("bytes.json"), file("tokenizer.json"));
  }
  fs::path file(const std::string& name) const { return folder_ / name; }
  void write_config(const nlohmann::json& changes) {
    models::write_decoder_config(file("config.json"), small_llama());
    auto config = nlohmann::json::parse(read_text_file(file("config.json")));
    config.update(changes);
    write_file(file("config.json"), config.dump());
  }
  tasks::TextNetwork open() const { return tasks::open_decoder_folder(folder_.path(), Device::cpu()); }
  std::string continued(const std::string& prompt) const {
    const tasks::TextNetwork network = open();
    std::string text;
    const auto keep = [&](std::string_view piece) {
      text += piece;
      return true;
    };
    train::continue_text(network.serve, network.continuation, prompt,
                         {.tokens = 10, .sampling = {.temperature = 0}}, keep);
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(DecoderFolderTest, SaysWhatItsWeightsSay) {
  const tasks::TextNetwork network = open();
  EXPECT_EQ(network.continuation.window, 40);
  const text::Tokenizer tokenizer = text::read_tokenizer(folder_.path());
  const std::vector<int32_t> tokens = tokenizer.encode("What is there to say?").ids;
  EXPECT_EQ(network.continuation.tokens("What is there to say?"), tokens);
  EXPECT_EQ(network.continuation.text(tokens), "What is there to say?");
  // A token that the tokenizer does not have is no text.
  EXPECT_EQ(network.continuation.text(std::vector<int32_t>{tokens[0], 1205}), tokenizer.token(tokens[0]));
  train::TextReader reader(network.continuation, network.serve, 40);
  const Tensor logits = reader.read(tokens);

  const auto variables = std::make_shared<Variables>(Device::cpu());
  for (const auto& [name, value] : models::formula::weights(models::decoder_variables(small_llama())))
    variables->set(name, value);
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* given = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, std::ssize(tokens)}});
  graph.add_output("logits", models::decoder_logits(context, small_llama(),
                                                    models::decoder(context, small_llama(), given)));
  const auto whole = compile(graph, Device::cpu(), {});
  whole->bind(variables);
  const std::vector<double> all =
      whole->run({{"tokens", Tensor::from<int32_t>({1, std::ssize(tokens)}, tokens)}})
          .at("logits")
          .to_doubles();
  // The bound is that of tests/train/text_reader_test.cpp.
  const std::vector<double> last(all.end() - small_llama().vocabulary, all.end());
  expect_close(logits, last, {.absolute = 1e-5, .relative = 1e-5}, "logits");
}

TEST_F(DecoderFolderTest, ComputesInThePrecisionThatItIsGiven) {
  const auto logits = [&](std::optional<Precision> precision) {
    const tasks::TextNetwork network = tasks::open_decoder_folder(folder_.path(), Device::cpu(), precision);
    train::TextReader reader(network.continuation, network.serve, 40);
    return reader.read(network.continuation.tokens("What is there to say?")).to_doubles();
  };
  const std::vector<double> wide = logits(std::nullopt), narrow = logits(Precision::bf16);
  EXPECT_NE(wide, narrow);
  // Of numbers of about one; each of the some ten products on the way rounds to 8 bits, by 2^-9 at most.
  expect_close(narrow, wide, {.absolute = 2e-2, .relative = 2e-2}, "logits");
}

TEST_F(DecoderFolderTest, EndsAndBeginsWithTheTokensOfItsConfig) {
  const tasks::TextNetwork without = open();
  EXPECT_TRUE(without.continuation.start.empty());
  EXPECT_TRUE(without.continuation.ends.empty());
  EXPECT_NE(continued("What"), "");
  train::TextReader reader(without.continuation, without.serve, 40);
  const Tensor logits = reader.read(without.continuation.tokens("What"));
  const auto first = train::draw_token(logits.data<float>(), {.temperature = 0}, 0);
  write_config({{"eos_token_id", {1300, first}}, {"bos_token_id", 5}});
  const tasks::TextNetwork with = open();
  EXPECT_EQ(with.continuation.start, (std::vector<int32_t>{5}));
  EXPECT_EQ(with.continuation.ends, (std::vector<int32_t>{static_cast<int32_t>(first)}))
      << "1300 is no token";
  EXPECT_EQ(continued("What"), "");
  write_config({{"eos_token_id", "none"}});
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "eos_token_id");
}

// A piece that begins a word has its space where it goes on with a text.
TEST_F(DecoderFolderTest, TakesSentencePiecesWithTheirSpaces) {
  fs::copy_file(text_golden("pieces.model"), file("tokenizer.model"));
  std::optional<tasks::TextNetwork> network;
  try {
    network = open();
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ErrorCode::unsupported) << error.what();  // built without the library
    GTEST_SKIP() << error.what();
  }
  const text::Tokenizer tokenizer = text::read_tokenizer(file("tokenizer.model"));
  const std::vector<int32_t> tokens = network->continuation.tokens("some words");
  EXPECT_EQ(tokenizer.token(tokens.front()), "<s>");
  const std::vector<int32_t> drawn = tokenizer.encode("words").ids;
  ASSERT_TRUE(tokenizer.token(drawn.front()).starts_with("\u2581"));
  EXPECT_EQ(tokenizer.decode(drawn), "words");
  EXPECT_EQ(network->continuation.text(drawn), " words");
}

TEST_F(DecoderFolderTest, NamesWhatDoesNotGoTogether) {
  write_config({{"vocab_size", 1100}});
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "1200 tokens", "1100");
  write_config({{"intermediate_size", 25}});
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "mlp", "[24, 16]", "[25, 16]");
  write_config({{"num_hidden_layers", 3}});
  EXPECT_ERROR(open(), ErrorCode::invalid_file, "model.layers.2", "missing");
  write_config({{"model_type", "bert"}});
  EXPECT_ERROR(open(), ErrorCode::unsupported, "bert");
  write_config(nlohmann::json::object());
  fs::remove(file("tokenizer.json"));
  EXPECT_ERROR(open(), ErrorCode::io, folder_.path().string());
}

}  // namespace
}  // namespace tessera::testing
