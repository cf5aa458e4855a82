// Classification of texts as recipes ask for it: a file of texts with their labels.
#include "tessera/base/error.h"
#include "tessera/tasks/text_classification.h"
#include "tessera/train/task_registry.h"

#include "tasks/bert_settings.h"
#include "tasks/fine_tuning.h"
#include "tasks/row_data.h"
#include "tasks/text_records.h"

namespace tessera::tasks {
namespace {

using Texts = std::vector<LabeledText>;

std::vector<Option> data_options() {
  const auto field = [](const char* key, const char* value, const char* documentation) {
    return Option{.key = key, .value = std::string(value), .documentation = documentation};
  };
  return fine_tuning_data_options(FineTuningOptions{}.tokens,
                                  {field("text", "text", "The field or column of the text"),
                                   field("pair", "", "That of a second text; empty: there is none"),
                                   field("label", "label", "That of the label"), labels_option()});
}

std::vector<std::string> labels_of(const Options& settings) {
  return read_text_fields(settings.text("data.path"), {settings.text("data.label")}).front();
}

// Without labels unless `labeled`.
Texts read_texts(const Options& settings, const std::string& file, bool labeled) {
  std::vector<std::string> names{settings.text("data.text")};
  const std::string& pair = settings.text("data.pair");
  if (!pair.empty()) names.push_back(pair);
  if (labeled) names.push_back(settings.text("data.label"));
  const std::vector<std::string> labels = settings.texts("data.labels");
  const std::vector<std::vector<std::string>> fields = read_text_fields(file, names);
  Texts texts;
  for (size_t i = 0; i < fields[0].size(); ++i) {
    LabeledText& text = texts.emplace_back(LabeledText{.text = fields[0][i]});
    if (!pair.empty()) text.pair = fields[1][i];
    if (labeled) text.label = label_number(labels, fields.back()[i], file);
  }
  return texts;
}

train::Workload create(const Options& settings) {
  const text::Tokenizer tokenizer = tokenizer_of(settings);
  const FineTuningOptions options = fine_tuning_of(settings, tokenizer);
  const auto sets = made_when_asked<ExampleSets<LabeledText>>([settings] {
    return read_examples<LabeledText>(
        settings, [&](const std::string& file) { return read_texts(settings, file, true); });
  });
  const auto rows = [=](const Texts& texts) { return text_classification_rows(texts, tokenizer, options); };
  const auto asked = [=](const Texts& texts) -> train::PredictionSet {
    return {rows_in_order(rows(texts), settings), text_classification_text(options.network.labels, texts)};
  };
  train::Workload workload = fine_tuning_workload(text_classification(options), options.network,
                                                  models::BertForm::sequence_classification, settings);
  workload.training = [=] { return training_rows(rows(sets().training), settings); };
  workload.test = [=]() -> train::TestSet {
    return {rows_in_order(rows(sets().test), settings), text_classification_evaluator()};
  };
  workload.predictions = [=] { return asked(sets().test); };
  workload.file_predictions = [=](const std::vector<std::string>& files) {
    Texts texts;
    for (const std::string& file : files) {
      for (LabeledText& text : read_texts(settings, file, false)) texts.push_back(std::move(text));
    }
    return asked(texts);
  };
  workload.text_predictions = [=](const std::vector<std::string>& given) {
    Texts texts;
    const bool pairs = !settings.text("data.pair").empty();
    require(!pairs || given.size() % 2 == 0, ErrorCode::invalid_argument,
            "pairs of texts are asked of, and these are {} texts", given.size());
    for (size_t i = 0; i < given.size(); i += pairs ? 2 : 1) {
      LabeledText& text = texts.emplace_back(LabeledText{.text = given[i]});
      if (pairs) text.pair = given[i + 1];
    }
    return asked(texts);
  };
  workload.output_names = [labels = options.network.labels] { return labels; };
  return workload;
}

const train::TaskRegistration kRegistration(
    {.name = "text_classification",
     .documentation =
         "One label for each text or pair of texts, by fine tuning of BERT (Devlin et al. 2019).",
     .sections = {{"model", bert_options()}, {"data", data_options()}},
     .complete = [](Options& settings) { complete_labels(settings, labels_of); },
     .check = check_fine_tuning,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
