#include "tasks/text_data.h"

#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/data/text.h"
#include "tessera/text/tokenizer.h"

#include "tasks/row_data.h"
#include "tasks/token_data.h"

namespace tessera::tasks {
namespace {

constexpr int64_t kBytes = 256;

}  // namespace

std::vector<Option> transformer_options(int64_t width, int64_t heads, int64_t layers, double dropout) {
  const auto count = [](const char* key, int64_t value, const char* documentation) {
    return Option{
        .key = key, .value = value, .documentation = documentation, .limits = Limits::between(1, 65536)};
  };
  return {count("width", width, "Numbers that a token is represented by"),
          count("heads", heads, "Of each attention; a divisor of the width"),
          count("layers", layers, "Attention and two linear layers each"),
          {.key = "dropout",
           .value = dropout,
           .documentation = "Probability with which training zeroes what a layer adds",
           .limits = Limits::fraction()}};
}

std::vector<Contradiction> check_text(const Options& settings) {
  std::vector<Contradiction> found = check_given(settings, {"data.path"});
  const int64_t width = settings.integer("model.width");
  if (const int64_t heads = settings.integer("model.heads"); width % heads != 0)
    found.push_back({{"model.width", "model.heads"},
                     fmt::format("'model.width' ({}) is no multiple of 'model.heads' ({})", width, heads)});
  return found;
}

int64_t likeliest_token(const Tensor& logits, int64_t place) {
  const int64_t tokens = logits.shape()[2];
  int64_t best = 0;
  for (int64_t i = 1; i < tokens; ++i) {
    if (logits.at(place * tokens + i) > logits.at(place * tokens + best)) best = i;
  }
  return best;
}

std::string shown_byte(int64_t token) {
  if (token == '\n' || token == '\t') return " ";
  return {token >= ' ' && token <= '~' ? static_cast<char>(token) : '.'};
}

std::vector<Option> text_options(int64_t tokens, std::vector<Option> of_task) {
  std::vector<Option> options{
      {.key = "kind",
       .value = std::string("bytes"),
       .documentation = "What tokens are: `bytes` of text files, or `tokens` of a folder that "
                        "`tessera data tokenize` wrote",
       .choices = {"bytes", "tokens"},
       .resuming = Resuming::fixed},
      {.key = "path",
       .value = std::string(),
       .documentation = "A text file, or a folder of them; of `tokens` the folder of the shards",
       .is_path = true,
       .resuming = Resuming::free},
      {.key = "tokens",
       .value = tokens,
       .documentation = "Tokens of a row",
       .limits = Limits::between(2, 65536)}};
  for (Option& option : of_task) options.push_back(std::move(option));
  return with_row_options(std::move(options));
}

TextData::TextData(const Options& settings) : settings_(settings) {
  if (settings.text("data.kind") == "tokens")
    tokens_ = std::make_shared<const data::TokenSet>(settings.text("data.path"));
}

data::HeldOut TextData::bytes_of(const Options& settings, Bytes& bytes) {
  const std::string& path = settings.text("data.path");
  return bytes.get(path, [&] {
    return data::hold_out({{"tokens", data::read_byte_windows(path, settings.integer("data.tokens"))}},
                          settings.real("data.test_share"));
  });
}

int64_t TextData::vocabulary() const {
  return tokens_ == nullptr ? kBytes : tokens_->header().vocabulary;
}

const data::TokenSetHeader* TextData::header() const {
  return tokens_ == nullptr ? nullptr : &tokens_->header();
}

train::Workload TextData::workload(nn::Task task, train::EvaluatorMaker evaluator) const {
  if (tokens_ == nullptr) {
    const auto rows = [settings = settings_, bytes = bytes_] { return bytes_of(settings, *bytes); };
    return row_workload(std::move(task), rows, std::move(evaluator), settings_);
  }
  return token_workload(std::move(task), tokens_, std::move(evaluator), settings_);
}

Tensor TextData::tokens_to_look_at() const {
  return tokens_ == nullptr ? bytes().test.at("tokens") : test_rows_of(tokens_, settings_).at("tokens");
}

train::TextContinuation TextData::continuation() const {
  // Of the token after a row's last it has learned nothing.
  train::TextContinuation result{.window = settings_.integer("data.tokens") - 1};
  if (tokens_ == nullptr) {
    result.start = {'\n'};
    result.tokens = [](std::string_view text) {
      std::vector<int32_t> tokens;
      for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
      return tokens;
    };
    result.text = [](std::span<const int32_t> tokens) {
      std::string text;
      for (const int32_t token : tokens) text += static_cast<char>(token);
      return text;
    };
    return result;
  }
  const text::Tokenizer tokenizer =
      text::read_tokenizer(std::filesystem::path(settings_.text("data.path")) / "tokenizer");
  const data::TokenSetHeader& header = tokens_->header();
  if (const std::optional<int32_t> first = header.begin ? header.begin : header.separator)
    result.start = {*first};
  result.tokens = [tokenizer](std::string_view text) {
    std::vector<int32_t> tokens;
    tokenizer.append_tokens(text, tokens);
    return tokens;
  };
  result.text = [tokenizer](std::span<const int32_t> tokens) { return tokenizer.decode(tokens); };
  return result;
}

std::function<std::string(int64_t token)> TextData::shown() const {
  if (tokens_ == nullptr) return shown_byte;
  return token_text(settings_.text("data.path"));
}

}  // namespace tessera::tasks
