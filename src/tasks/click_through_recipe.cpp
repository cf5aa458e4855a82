// Click-through networks as recipes ask for them: columns of a table.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/data/csv.h"
#include "tessera/data/rows.h"
#include "tessera/tasks/click_through.h"
#include "tessera/train/task_registry.h"

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
  return {
      {.key = "path",
       .value = std::string(),
       .documentation = "A table of comma-separated values, whose first line names the columns",
       .is_path = true,
       .resuming = Resuming::free},
      {.key = "categories",
       .value = std::vector<std::string>{},
       .documentation = "Columns of which each value has an embedding of its own"},
      {.key = "numbers",
       .value = std::vector<std::string>{},
       .documentation = "Columns of numbers, which are taken to a mean of 0 and a deviation of 1; what is no "
                        "number becomes 0"},
      {.key = "label",
       .value = std::string(),
       .documentation = "The column that says what happened; rows without a number there are left out"},
      {.key = "above",
       .value = 0.5,
       .documentation = "It happened where the label is larger than this",
       .limits = Limits::between(-1e30, 1e30)},
      {.key = "test_share",
       .value = 0.1,
       .documentation = "Of the rows, evenly spread; they are not trained on",
       .limits = {.low = 0, .high = 0.9, .low_open = true},
       .resuming = Resuming::fixed},
      {.key = "shuffle",
       .value = true,
       .documentation = "Whether each epoch visits the rows in a new order",
       .resuming = Resuming::fixed}};
}

struct Table {
  std::vector<int64_t> entries;
  data::HeldOut rows;
};

// To a mean of 0 and a deviation of 1.
void standardize(std::vector<double>& numbers) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const double number : numbers) {
    if (std::isnan(number)) continue;
    sum += number;
    squares += number * number;
    ++count;
  }
  const double mean = count == 0 ? 0 : sum / count;
  const double variance = count == 0 ? 0 : squares / count - mean * mean;
  for (double& number : numbers) {
    number = std::isnan(number) ? 0 : (number - mean) / (variance > 0 ? std::sqrt(variance) : 1);
  }
}

// The rows that have a label.
Feeds to_tensors(const std::vector<data::TextColumn>& categories, std::vector<std::vector<double>> numbers,
                 const std::vector<double>& labels, double above) {
  const auto count = std::ssize(labels) - std::count_if(labels.begin(), labels.end(),
                                                        [](double label) { return std::isnan(label); });
  Tensor codes(DataType::int32, {count, std::ssize(categories)});
  Tensor values(DataType::fp32, {count, std::ssize(numbers)});
  Tensor happened(DataType::fp32, {count});
  for (std::vector<double>& column : numbers) standardize(column);
  int64_t code = 0;
  int64_t value = 0;
  int64_t place = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    if (std::isnan(labels[row])) continue;
    for (const data::TextColumn& column : categories) codes.set(code++, column.codes[row]);
    for (const std::vector<double>& column : numbers) values.set(value++, column[row]);
    happened.set(place++, labels[row] > above ? 1 : 0);
  }
  Feeds feeds{{"categories", std::move(codes)}, {"labels", std::move(happened)}};
  if (!numbers.empty()) feeds["numbers"] = std::move(values);
  return feeds;
}

Table read_table(const Options& settings) {
  const std::string& path = settings.text("data.path");
  std::vector<std::string> names = settings.texts("data.categories");
  const size_t tables = names.size();
  for (const std::string& name : settings.texts("data.numbers")) names.push_back(name);
  names.push_back(settings.text("data.label"));
  std::vector<data::TextColumn> columns = data::read_csv(path, names);
  const std::vector<double> labels = columns.back().numbers();
  std::vector<std::vector<double>> numbers;
  for (size_t i = tables; i + 1 < columns.size(); ++i) numbers.push_back(columns[i].numbers());
  columns.resize(tables);
  require(!std::all_of(labels.begin(), labels.end(), [](double label) { return std::isnan(label); }),
          ErrorCode::invalid_file, "{}: no row has a number as '{}' ('data.label')", path, names.back());
  Table table;
  for (const data::TextColumn& column : columns) table.entries.push_back(std::ssize(column.values));
  table.rows = data::hold_out(to_tensors(columns, std::move(numbers), labels, settings.real("data.above")),
                              settings.real("data.test_share"));
  return table;
}

train::Workload create(const Options& settings) {
  const auto table = std::make_shared<const Table>(read_table(settings));
  const data::RowOptions loading{.batch_size = settings.integer("train.batch"),
                                 .shuffle = settings.boolean("data.shuffle"),
                                 .seed = static_cast<uint64_t>(settings.integer("train.seed"))};
  const data::RowOptions in_order{.batch_size = loading.batch_size, .shuffle = false, .drop_last = false};
  return {
      .task = click_through({.entries = table->entries,
                             .numbers = std::ssize(settings.texts("data.numbers")),
                             .width = settings.integer("model.width"),
                             .hidden = settings.integers("model.hidden")}),
      .data = std::filesystem::path(settings.text("data.path")).filename().string(),
      .training = [table, loading] { return std::make_shared<data::Rows>(table->rows.training, loading); },
      .test = [table, in_order]() -> train::TestSet {
        return {std::make_shared<data::Rows>(table->rows.test, in_order), click_through_evaluator()};
      }};
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found;
  for (const char* key : {"data.path", "data.label"}) {
    if (settings.text(key).empty()) found.push_back({{key}, fmt::format("'{}' is missing", key)});
  }
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
