// Tagging of words as recipes ask for it: a file of words with their tags.
#include <algorithm>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tasks/text_tagging.h"
#include "tessera/train/task_registry.h"

#include "tasks/bert_settings.h"
#include "tasks/fine_tuning.h"
#include "tasks/row_data.h"
#include "tasks/text_records.h"

namespace tessera::tasks {
namespace {

// With the tags as they are called.
struct NamedTags {
  std::vector<std::string> words;
  std::vector<std::string> tags;
};

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    const auto is_end = [&](size_t place) { return place == line.size() || is_space(line[place]); };
    size_t end = at;
    while (!is_end(end)) ++end;
    if (end > at) words.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string> list_of(const nlohmann::json& json, const std::string& field,
                                 const std::string& where) {
  const auto found = json.find(field);
  const bool is_list = found != json.end() && found->is_array() &&
                       std::ranges::all_of(*found, [](const auto& one) { return one.is_string(); });
  require(is_list, ErrorCode::invalid_file, "{} has no list of texts '{}'", where, field);
  return found->get<std::vector<std::string>>();
}

std::vector<NamedTags> read_lists(const Options& settings, const std::string& file, bool tagged) {
  std::vector<NamedTags> texts;
  visit_json_lines(file, [&](const nlohmann::json& json, const std::string& where) {
    NamedTags& one = texts.emplace_back(NamedTags{list_of(json, settings.text("data.words"), where), {}});
    if (!tagged) return;
    one.tags = list_of(json, settings.text("data.tags"), where);
    require(one.tags.size() == one.words.size(), ErrorCode::invalid_file, "{} has {} tags of {} words", where,
            one.tags.size(), one.words.size());
  });
  return texts;
}

// A word a line, with its tag in the last column; an empty line ends a text.
std::vector<NamedTags> read_columns(const std::string& file) {
  std::vector<NamedTags> texts;
  bool is_open = false;
  int64_t number = 0;
  for (const std::string& line : read_lines(file)) {
    ++number;
    const std::vector<std::string> cells = split_words(line);
    if (cells.empty() || cells[0] == "-DOCSTART-") {
      is_open = false;
      continue;
    }
    require(cells.size() >= 2, ErrorCode::invalid_file, "{}: line {} has no tag after the word", file,
            number);
    if (!is_open) texts.emplace_back();
    is_open = true;
    texts.back().words.push_back(cells.front());
    texts.back().tags.push_back(cells.back());
  }
  return texts;
}

std::vector<NamedTags> read_named(const Options& settings, const std::string& file) {
  return is_json_file(file) ? read_lists(settings, file, true) : read_columns(file);
}

std::vector<TaggedText> read_tagged(const Options& settings, const std::string& file) {
  const std::vector<std::string> labels = settings.texts("data.labels");
  std::vector<TaggedText> texts;
  for (NamedTags& one : read_named(settings, file)) {
    TaggedText& text = texts.emplace_back(TaggedText{.words = std::move(one.words)});
    for (const std::string& tag : one.tags) text.tags.push_back(label_number(labels, tag, file));
  }
  return texts;
}

// Words alone: lists of them, or lines.
std::vector<TaggedText> read_untagged(const Options& settings, const std::string& file) {
  std::vector<TaggedText> texts;
  if (is_json_file(file)) {
    for (NamedTags& one : read_lists(settings, file, false))
      texts.push_back(TaggedText{.words = std::move(one.words)});
  } else {
    for (const std::string& line : read_lines(file)) {
      if (!line.empty()) texts.push_back(TaggedText{.words = split_words(line)});
    }
  }
  return texts;
}

// What the tokenizer makes nothing of, such as a word of control characters, has no token to tag.
std::vector<TaggedText> without_empty_words(const std::vector<TaggedText>& texts,
                                            const text::Tokenizer& tokenizer) {
  std::vector<TaggedText> result;
  for (const TaggedText& text : texts) {
    TaggedText& kept = result.emplace_back();
    for (size_t word = 0; word < text.words.size(); ++word) {
      std::vector<int32_t> tokens;
      tokenizer.append_tokens(text.words[word], tokens);
      if (tokens.empty()) continue;
      kept.words.push_back(text.words[word]);
      if (!text.tags.empty()) kept.tags.push_back(text.tags[word]);
    }
  }
  return result;
}

std::vector<std::string> labels_of(const Options& settings) {
  std::vector<std::string> labels;
  for (const NamedTags& one : read_named(settings, settings.text("data.path")))
    labels.insert(labels.end(), one.tags.begin(), one.tags.end());
  return labels;
}

train::Workload create(const Options& settings) {
  const text::Tokenizer tokenizer = tokenizer_of(settings);
  const FineTuningOptions options = fine_tuning_of(settings, tokenizer);
  const std::vector<std::string> labels = options.network.labels;
  const auto sets = made_when_asked<ExampleSets<TaggedText>>([settings, tokenizer] {
    return read_examples<TaggedText>(settings, [&](const std::string& file) {
      return without_empty_words(read_tagged(settings, file), tokenizer);
    });
  });
  const auto rows = [=](const std::vector<TaggedText>& texts) {
    return text_tagging_rows(texts, tokenizer, options);
  };
  const auto asked = [=](const std::vector<TaggedText>& texts) -> train::PredictionSet {
    return {rows_in_order(rows(texts), settings), text_tagging_text(labels, texts)};
  };
  train::Workload workload = fine_tuning_workload(text_tagging(options), options.network,
                                                  models::BertForm::token_classification, settings);
  workload.training = [=] { return training_rows(rows(sets().training), settings); };
  workload.test = [=]() -> train::TestSet {
    return {rows_in_order(rows(sets().test), settings), text_tagging_evaluator(labels)};
  };
  workload.predictions = [=] { return asked(sets().test); };
  workload.file_predictions = [=](const std::vector<std::string>& files) {
    std::vector<TaggedText> texts;
    for (const std::string& file : files) {
      for (TaggedText& text : read_untagged(settings, file)) texts.push_back(std::move(text));
    }
    return asked(without_empty_words(texts, tokenizer));
  };
  workload.text_predictions = [=](const std::vector<std::string>& given) {
    std::vector<TaggedText> texts;
    for (const std::string& text : given) texts.push_back(TaggedText{.words = split_words(text)});
    return asked(without_empty_words(texts, tokenizer));
  };
  return workload;
}

std::vector<Option> data_options() {
  const auto field = [](const char* key, const char* value, const char* documentation) {
    return Option{.key = key, .value = std::string(value), .documentation = documentation};
  };
  return fine_tuning_data_options(
      FineTuningOptions{}.tokens,
      {field("words", "tokens",
             "The field of the list of words, of a `.jsonl`. Any other file has a word a line, its tag in "
             "the last "
             "column, and an empty line after each text"),
       field("tags", "tags", "The field of the list of their tags, of a `.jsonl`"), labels_option()});
}

const train::TaskRegistration kRegistration(
    {.name = "text_tagging",
     .documentation = "A tag for each word of a text, such as the names in it, by fine tuning of BERT.",
     .sections = {{"model", bert_options()}, {"data", data_options()}},
     .complete = [](Options& settings) { complete_labels(settings, labels_of); },
     .check = check_fine_tuning,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
