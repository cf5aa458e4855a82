// Click-through networks as recipes ask for them: columns of a table.
#include "tessera/data/tables.h"
#include "tessera/tasks/click_through.h"
#include "tessera/train/task_registry.h"

#include "tasks/balanced.h"
#include "tasks/data_kind.h"
#include "tasks/row_data.h"

namespace tessera::tasks {
namespace {

const ClickThroughOptions kDefaults;

std::vector<Option> model_options() {
  return {{.key = "width",
           .value = kDefaults.width,
           .documentation = "Numbers of an embedding",
           .limits = Limits::between(1, 65536)},
          {.key = "hidden",
           .value = kDefaults.hidden,
           .documentation = "Outputs of each layer over the embeddings",
           .limits = Limits::between(1, 65536)}};
}

train::OptionSection data_options() {
  std::vector<Option> options = with_row_options(
      {{.key = "kind",
        .value = std::string("csv"),
        .documentation = "Where the columns come from",
        .resuming = Resuming::fixed},
       {.key = "categories",
        .value = std::vector<std::string>{},
        .documentation = "Columns of which each value has an embedding of its own"},
       {.key = "numbers",
        .value = std::vector<std::string>{},
        .documentation =
            "Columns of numbers, which are taken to a mean of 0 and a deviation of 1; what is no "
            "number becomes 0"},
       {.key = "label",
        .value = std::string(),
        .documentation = "The column that says what happened; rows without a number there are left out"},
       {.key = "above",
        .value = ClickThroughColumns{}.above,
        .documentation = "It happened where the label is larger than this",
        .limits = Limits::between(-1e30, 1e30)},
       balanced_option("rows")});
  return {"data", std::move(options), [] { return choices_of(data::tables()); }};
}

const data::TableDescription& kind_of(const Options& settings) {
  return data::tables().get(settings.text("data.kind"));
}

train::Workload create(const Options& settings) {
  const auto read = [&](const std::vector<std::string>& columns) {
    return kind_of(settings).open(settings.section("data"), columns);
  };
  const ClickThroughTable table = read_click_through_table(read, data_name(settings),
                                                           {.categories = settings.texts("data.categories"),
                                                            .numbers = settings.texts("data.numbers"),
                                                            .label = settings.text("data.label"),
                                                            .above = settings.real("data.above"),
                                                            .test_share = settings.real("data.test_share")});
  nn::Task task = click_through({.entries = table.entries,
                                 .numbers = std::ssize(settings.texts("data.numbers")),
                                 .width = settings.integer("model.width"),
                                 .hidden = settings.integers("model.hidden")});
  train::Workload workload = row_workload(std::move(task), table.rows, click_through_evaluator(), settings);
  workload.predictions = [test = table.rows.test, settings]() -> train::PredictionSet {
    return {rows_in_order(test, settings), click_through_text()};
  };
  return workload;
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_kind(kind_of(settings), settings);
  check_balanced(settings, found);
  if (settings.text("data.label").empty()) found.push_back({{"data.label"}, "'data.label' is missing"});
  if (settings.texts("data.categories").empty())
    found.push_back({{"data.categories"}, "'data.categories' names no column"});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "click_through",
     .documentation =
         "Whether something happens, from categories with embedding tables and numbers (DLRM, Naumov "
         "et al. 2019). Tables are updated by the rows that a batch reads: optimizers that need "
         "whole parameters, and accumulated batches, do not take them.",
     .sections = {{"model", model_options()}, data_options()},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
