#include "tasks/text_data.h"

#include <utility>

#include "tessera/data/text.h"

#include "tasks/row_data.h"
#include "tasks/token_data.h"

namespace tessera::tasks {
namespace {

constexpr int64_t kBytes = 256;

}  // namespace

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
  const std::string& path = settings.text("data.path");
  if (settings.text("data.kind") == "tokens") {
    tokens_ = std::make_shared<const data::TokenSet>(path);
  } else {
    bytes_ = data::hold_out({{"tokens", data::read_byte_windows(path, settings.integer("data.tokens"))}},
                            settings.real("data.test_share"));
  }
}

int64_t TextData::vocabulary() const {
  return tokens_ == nullptr ? kBytes : tokens_->header().vocabulary;
}

const data::TokenSetHeader* TextData::header() const {
  return tokens_ == nullptr ? nullptr : &tokens_->header();
}

train::Workload TextData::workload(nn::Task task, train::EvaluatorMaker evaluator) const {
  if (tokens_ == nullptr) return row_workload(std::move(task), bytes_, std::move(evaluator), settings_);
  return token_workload(std::move(task), tokens_, std::move(evaluator), settings_);
}

Tensor TextData::tokens_to_look_at() const {
  return tokens_ == nullptr ? bytes_.test.at("tokens") : test_rows_of(tokens_, settings_).at("tokens");
}

std::function<std::string(int64_t token)> TextData::shown() const {
  if (tokens_ == nullptr) return shown_byte;
  return token_text(settings_.text("data.path"));
}

}  // namespace tessera::tasks
