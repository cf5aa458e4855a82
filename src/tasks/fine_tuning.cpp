#include "tasks/fine_tuning.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/data/rows.h"
#include "tessera/models/bert_files.h"
#include "tessera/nn/layers.h"

#include "tasks/bert_settings.h"
#include "tasks/data_kind.h"
#include "tasks/row_data.h"

namespace tessera::tasks {

std::vector<Field> text_inputs(const FineTuningOptions& options, std::vector<Field> of_task) {
  require(options.tokens > 0 && options.tokens <= options.network.positions, ErrorCode::invalid_argument,
          "rows of {} tokens, the network has {} positions", options.tokens, options.network.positions);
  const Dimension batch = Dimension::symbol("batch");
  const TensorType of_tokens{DataType::int32, {batch, options.tokens}};
  std::vector<Field> fields{
      {"tokens", of_tokens}, {"segments", of_tokens}, {"lengths", {DataType::int32, {batch}}}};
  for (Field& field : of_task) fields.push_back(std::move(field));
  return fields;
}

Value* encoded_text(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs) {
  return models::bert_encoder(
      context, network,
      {.tokens = inputs["tokens"], .segments = inputs["segments"], .lengths = inputs["lengths"]});
}

std::vector<Option> fine_tuning_data_options(int64_t tokens, std::vector<Option> of_task) {
  std::vector<Option> options{
      path_option("The file of the examples"),
      {.key = "test_path",
       .value = std::string(),
       .documentation = "One like it to test on; empty: `data.test_share` of the examples",
       .is_path = true,
       .resuming = Resuming::free},
      {.key = "tokenizer",
       .value = std::string(),
       .documentation = "The tokenizer's folder or file, as `tessera data tokenize` takes it",
       .is_path = true,
       .resuming = Resuming::free},
      {.key = "tokens",
       .value = tokens,
       .documentation = "Tokens of a row, those around texts included",
       .limits = Limits::between(8, 65536)}};
  for (Option& option : of_task) options.push_back(std::move(option));
  return with_row_options(std::move(options));
}

std::vector<Contradiction> check_fine_tuning(const Options& settings) {
  std::vector<Contradiction> found = of_data(check_path(settings.section("data")));
  if (settings.text("data.tokenizer").empty())
    found.push_back({{"data.tokenizer"}, "'data.tokenizer' is missing"});
  for (Contradiction& one : check_bert(settings)) found.push_back(std::move(one));
  return found;
}

Option labels_option() {
  return {.key = "labels",
          .value = std::vector<std::string>{},
          .documentation = "The labels, in the order of the network's outputs",
          .unset = "those of `data.path` in the order of their letters",
          .resuming = Resuming::fixed};
}

void complete_labels(Options& settings,
                     const std::function<std::vector<std::string>(const Options& settings)>& labels_of) {
  std::error_code error;
  const std::string& path = settings.text("data.path");
  // A file that is not there is told of where files are checked.
  if (!settings.texts("data.labels").empty() || !std::filesystem::is_regular_file(path, error)) return;
  std::vector<std::string> labels = labels_of(settings);
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  settings.set("data.labels", std::move(labels));
}

int32_t label_number(const std::vector<std::string>& labels, const std::string& label,
                     const std::string& file) {
  const auto found = std::ranges::find(labels, label);
  require(found != labels.end(), ErrorCode::invalid_file, "{}: '{}' is none of the labels {}", file, label,
          fmt::join(labels, ", "));
  return static_cast<int32_t>(found - labels.begin());
}

text::Tokenizer tokenizer_of(const Options& settings) {
  return text::read_tokenizer(settings.text("data.tokenizer"));
}

FineTuningOptions fine_tuning_of(const Options& settings, const text::Tokenizer& tokenizer) {
  FineTuningOptions options{.network = bert_of(settings, tokenizer.vocabulary_size()),
                            .tokens = settings.integer("data.tokens")};
  options.network.labels = settings.texts("data.labels");
  return options;
}

std::vector<bool> held_out_examples(int64_t count, const Options& settings) {
  Tensor places(DataType::int64, {count});
  std::iota(places.data<int64_t>().begin(), places.data<int64_t>().end(), int64_t{0});
  const data::HeldOut parts = data::hold_out({{"places", places}}, settings.real("data.test_share"));
  std::vector<bool> held_out(static_cast<size_t>(count), false);
  for (const int64_t place : parts.test.at("places").data<int64_t>())
    held_out[static_cast<size_t>(place)] = true;
  return held_out;
}

train::Workload fine_tuning_workload(nn::Task task, const models::BertConfig& network, models::BertForm form,
                                     const Options& settings) {
  train::Workload workload;
  workload.task = std::move(task);
  workload.data = data_name(settings);
  workload.starting_weights = starting_bert(network, form);
  workload.write_beside_weights = [network, form](const std::filesystem::path& folder) {
    models::write_bert_config(folder / "config.json", network, form);
  };
  return workload;
}

}  // namespace tessera::tasks
