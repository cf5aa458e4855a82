#include "tasks/text_data.h"

#include <utility>

#include <fmt/format.h>

#include "tasks/data_kind.h"
#include "tasks/likeliest.h"
#include "tasks/row_data.h"

namespace tessera::tasks {
namespace {

const TextDescription& kind_of(const Options& settings) {
  return text_kinds().get(settings.text("data.kind"));
}

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
  std::vector<Contradiction> found = check_kind(kind_of(settings), settings);
  const int64_t width = settings.integer("model.width");
  if (const int64_t heads = settings.integer("model.heads"); width % heads != 0)
    found.push_back({{"model.width", "model.heads"},
                     fmt::format("'model.width' ({}) is no multiple of 'model.heads' ({})", width, heads)});
  return found;
}

int64_t likeliest_token(const Tensor& logits, int64_t place) {
  return likeliest_class(logits, place).number;
}

std::string shown_byte(int64_t token) {
  if (token == '\n' || token == '\t') return " ";
  return {token >= ' ' && token <= '~' ? static_cast<char>(token) : '.'};
}

train::OptionSection text_options(int64_t tokens, std::vector<Option> of_task) {
  std::vector<Option> options{{.key = "kind",
                               .value = std::string("bytes"),
                               .documentation = "What tokens are",
                               .resuming = Resuming::fixed},
                              {.key = "tokens",
                               .value = tokens,
                               .documentation = "Tokens of a row",
                               .limits = Limits::between(2, 65536)}};
  for (Option& option : of_task) options.push_back(std::move(option));
  return {"data", with_row_options(std::move(options)), [] { return choices_of(text_kinds()); }};
}

std::shared_ptr<const Texts> open_texts(const Options& settings) {
  return kind_of(settings).open(settings);
}

train::Workload text_workload(nn::Task task, const std::shared_ptr<const Texts>& texts,
                              train::EvaluatorMaker evaluator, const Options& settings) {
  return {.task = std::move(task),
          .data = data_name(settings),
          .training = [texts] { return texts->training(); },
          .test = [texts, evaluator = std::move(evaluator)]() -> train::TestSet {
            return {texts->test(), evaluator};
          }};
}

train::TextContinuation continuation_of(const Texts& texts, const Options& settings) {
  TextCoding coding = texts.coding();
  // Of the token after a row's last it has learned nothing.
  return {.window = settings.integer("data.tokens") - 1,
          .start = std::move(coding.start),
          .tokens = std::move(coding.tokens),
          .text = std::move(coding.text)};
}

}  // namespace tessera::tasks
