// Text as token shards have it, with the tokenizer that lies with them.
#include <filesystem>

#include "tessera/tasks/texts.h"
#include "tessera/text/tokenizer.h"

#include "tasks/data_kind.h"
#include "tasks/token_data.h"

namespace tessera::tasks {
namespace {

class TokenTexts : public Texts {
 public:
  explicit TokenTexts(const Options& settings)
      : settings_(settings), set_(std::make_shared<const data::TokenSet>(settings.text("data.path"))) {}

  int64_t vocabulary() const override { return set_->header().vocabulary; }
  SpecialTokens special() const override {
    const data::TokenSetHeader& header = set_->header();
    return {.begin = header.begin, .separator = header.separator, .mask = header.mask};
  }
  std::shared_ptr<const data::Source> training() const override {
    return token_rows(set_, settings_, data::TokenRowPart::training);
  }
  std::shared_ptr<const data::Source> test() const override {
    return token_rows(set_, settings_, data::TokenRowPart::test);
  }
  Tensor rows_to_look_at() const override { return test_rows_of(set_, settings_).at("tokens"); }
  std::shared_ptr<const data::TokenText> long_text() const override { return data::joined_text(set_); }
  // Throws as text::read_tokenizer().
  TextCoding coding() const override {
    const text::Tokenizer tokenizer =
        text::read_tokenizer(std::filesystem::path(settings_.text("data.path")) / "tokenizer");
    TextCoding coding;
    const SpecialTokens tokens = special();
    if (const std::optional<int32_t> first = tokens.begin ? tokens.begin : tokens.separator)
      coding.start = {*first};
    coding.tokens = [tokenizer](std::string_view text) {
      std::vector<int32_t> tokens;
      tokenizer.append_tokens(text, tokens);
      return tokens;
    };
    coding.text = [tokenizer](std::span<const int32_t> tokens) { return tokenizer.decode(tokens); };
    return coding;
  }
  std::function<std::string(int64_t token)> shown() const override {
    return token_text(settings_.text("data.path"));
  }

 private:
  Options settings_;
  std::shared_ptr<const data::TokenSet> set_;
};

const TextRegistration kRegistration(
    {.name = "tokens",
     .documentation = "the shards of a folder that `tessera data tokenize` wrote",
     .options = {path_option("The folder of the shards")},
     .open = [](const Options& settings) { return std::make_shared<const TokenTexts>(settings); },
     .check = check_path});

}  // namespace
}  // namespace tessera::tasks
