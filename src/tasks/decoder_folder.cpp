#include "tessera/tasks/decoder_folder.h"

#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/models/decoder_files.h"
#include "tessera/tasks/language_model.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/step.h"

namespace tessera::tasks {
namespace {

namespace fs = std::filesystem;

// Tokenizers of Llama's first generations are there in both forms, of which tokenizer.json has parts that are
// not known here. Their texts begin with a token of its own.
text::Tokenizer read_tokenizer_of(const fs::path& folder) {
  const fs::path model = folder / "tokenizer.model";
  std::error_code ignored;
  if (!fs::exists(model, ignored)) return text::read_tokenizer(folder);
  return text::parse_sentence_piece(read_text_file(model), model.string(), {.begin = true});
}

// SentencePiece leaves out the space that a text begins with, which one that goes on with another text wants:
// it is decoded after a word. Of other tokenizers nothing.
std::vector<int32_t> any_word_of(const text::Tokenizer& tokenizer) {
  if (tokenizer.kind() != "sentence_piece") return {};
  constexpr std::string_view kSpace = "\u2581";
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string_view token = tokenizer.token(id);
    if (token.starts_with(kSpace) && token.size() > kSpace.size()) return {id};
  }
  return {};
}

train::TextContinuation continuation_of(const fs::path& folder, const models::DecoderConfig& config) {
  const text::Tokenizer tokenizer = read_tokenizer_of(folder);
  const int64_t known = tokenizer.vocabulary_size();
  require(known <= config.vocabulary, ErrorCode::invalid_file,
          "{}: the tokenizer has {} tokens, the network {}", folder.string(), known, config.vocabulary);
  const models::DecoderTokens special = models::read_decoder_tokens(folder / "config.json");
  const std::vector<int32_t> before = any_word_of(tokenizer);
  train::TextContinuation result{.window = config.positions, .start = {}, .ends = special.ends};
  if (special.begin) result.start = {*special.begin};
  result.tokens = [tokenizer](std::string_view text) { return tokenizer.encode(text).ids; };
  result.text = [tokenizer, before, shown = tokenizer.decode(before).size(),
                 known](std::span<const int32_t> tokens) {
    std::vector<int32_t> all = before;
    // Networks may have room for more tokens than there are.
    for (const int32_t token : tokens)
      if (token < known) all.push_back(token);
    return tokenizer.decode(all).substr(shown);
  };
  result.passes = [config](int64_t capacity) { return language_model_passes(config, capacity); };
  return result;
}

}  // namespace

TextNetwork open_decoder_folder(const fs::path& folder, const std::shared_ptr<Device>& device,
                                std::optional<Precision> precision) {
  const models::DecoderConfig config = models::read_decoder_config(folder / "config.json");
  TextNetwork network{.continuation = continuation_of(folder, config), .serve = {}};
  const auto variables = std::make_shared<Variables>(device);
  for (const auto& [name, weight] : models::load_decoder(folder, config)) variables->set(name, weight);
  CompileOptions options;
  options.passes.precision = precision.value_or(device->training_precision());
  network.serve = [variables, options](const nn::Task& task) {
    return train::serve(task, variables, options);
  };
  return network;
}

}  // namespace tessera::tasks
