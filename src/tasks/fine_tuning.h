// What tasks that fine tune BERT are made of: rows of texts as inputs, and their recipes.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/compile/feeds.h"
#include "tessera/models/bert.h"
#include "tessera/nn/task.h"
#include "tessera/tasks/fine_tuning.h"
#include "tessera/text/tokenizer.h"
#include "tessera/train/workload.h"

namespace tessera::tasks {

// "tokens" and "segments", int32 [batch, tokens], "lengths", int32 [batch], and then those of the task.
// Throws Error(invalid_argument) where rows have more tokens than the network has positions.
std::vector<Field> text_inputs(const FineTuningOptions& options, std::vector<Field> of_task);
// [batch, tokens, width].
Value* encoded_text(nn::Context& context, const models::BertConfig& network, const nn::Values& inputs);

// data.path, test_path, tokenizer and tokens, those of a task, and those of rows.
std::vector<Option> fine_tuning_data_options(int64_t tokens, std::vector<Option> of_task);
std::vector<Contradiction> check_fine_tuning(const Options& settings);
// data.labels, of tasks that have labels.
Option labels_option();
// Sets data.labels to what `labels_of` finds in data.path, in their order, where they were left out.
void complete_labels(Options& settings,
                     const std::function<std::vector<std::string>(const Options& settings)>& labels_of);
// The number of each label. Throws Error(invalid_file) naming one that data.labels lacks.
int32_t label_number(const std::vector<std::string>& labels, const std::string& label,
                     const std::string& file);

text::Tokenizer tokenizer_of(const Options& settings);
FineTuningOptions fine_tuning_of(const Options& settings, const text::Tokenizer& tokenizer);

// What is trained on and what is tested on.
template <typename Example>
struct ExampleSets {
  std::vector<Example> training;
  std::vector<Example> test;
};

// Which of so many examples are held out, as data.test_share says.
std::vector<bool> held_out_examples(int64_t count, const Options& settings);

// Those of data.path, and of data.test_path or data.test_share of the former.
template <typename Example>
ExampleSets<Example> read_examples(const Options& settings,
                                   const std::function<std::vector<Example>(const std::string& file)>& read) {
  std::vector<Example> all = read(settings.text("data.path"));
  if (const std::string& test = settings.text("data.test_path"); !test.empty())
    return {std::move(all), read(test)};
  const std::vector<bool> held_out = held_out_examples(std::ssize(all), settings);
  ExampleSets<Example> sets;
  for (size_t i = 0; i < all.size(); ++i)
    (held_out[i] ? sets.test : sets.training).push_back(std::move(all[i]));
  return sets;
}

// What is made when it is first asked for, by whichever thread.
template <typename Value>
std::function<const Value&()> made_when_asked(std::function<Value()> make) {
  struct State {
    std::function<Value()> make;
    std::once_flag is_made;
    std::optional<Value> value;
  };
  const auto state = std::make_shared<State>();
  state->make = std::move(make);
  return [state]() -> const Value& {
    std::call_once(state->is_made, [&] { state->value = state->make(); });
    return *state->value;
  };
}

// Starts from files of any BERT, and leaves a config.json.
train::Workload fine_tuning_workload(nn::Task task, const models::BertConfig& network, models::BertForm form,
                                     const Options& settings);

}  // namespace tessera::tasks
