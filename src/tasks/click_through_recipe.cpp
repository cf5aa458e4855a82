// Click-through networks as recipes ask for them: columns of a table.
#include "tessera/tasks/click_through.h"
#include "tessera/train/task_registry.h"

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

std::vector<Option> data_options() {
  return with_row_options(
      {{.key = "path",
        .value = std::string(),
        .documentation = "A table of comma-separated values, whose first line names the columns",
        .is_path = true,
        .resuming = Resuming::free},
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
        .limits = Limits::between(-1e30, 1e30)}});
}

train::Workload create(const Options& settings) {
  const ClickThroughTable table =
      read_click_through_table(settings.text("data.path"), {.categories = settings.texts("data.categories"),
                                                            .numbers = settings.texts("data.numbers"),
                                                            .label = settings.text("data.label"),
                                                            .above = settings.real("data.above"),
                                                            .test_share = settings.real("data.test_share")});
  nn::Task task = click_through({.entries = table.entries,
                                 .numbers = std::ssize(settings.texts("data.numbers")),
                                 .width = settings.integer("model.width"),
                                 .hidden = settings.integers("model.hidden")});
  train::Workload workload = row_workload(
      std::move(task), [rows = table.rows] { return rows; }, click_through_evaluator(), settings);
  workload.predictions = [test = table.rows.test, settings]() -> train::PredictionSet {
    return {rows_in_order(test, settings), click_through_text()};
  };
  return workload;
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_given(settings, {"data.path", "data.label"});
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
     .sections = {{"model", model_options()}, {"data", data_options()}},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
