#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/tasks/click_through.h"

namespace tessera::tasks {
namespace {

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

}  // namespace

ClickThroughTable read_click_through_table(const std::filesystem::path& path,
                                           const ClickThroughColumns& columns) {
  const auto read = [&](const std::vector<std::string>& names) { return data::read_csv(path, names); };
  return read_click_through_table(read, path.string(), columns);
}

ClickThroughTable read_click_through_table(const ColumnReader& read, const std::string& name,
                                           const ClickThroughColumns& columns) {
  std::vector<std::string> names = columns.categories;
  names.insert(names.end(), columns.numbers.begin(), columns.numbers.end());
  names.push_back(columns.label);
  std::vector<data::TextColumn> texts = read(names);
  const std::vector<double> labels = texts.back().numbers();
  const bool none = std::all_of(labels.begin(), labels.end(), [](double label) { return std::isnan(label); });
  require(!none, ErrorCode::invalid_file, "{}: no row has a number as '{}', the label", name, columns.label);
  std::vector<std::vector<double>> numbers;
  for (size_t i = 0; i < columns.numbers.size(); ++i)
    numbers.push_back(texts[columns.categories.size() + i].numbers());
  texts.resize(columns.categories.size());
  ClickThroughTable table;
  for (const data::TextColumn& column : texts) table.entries.push_back(std::ssize(column.values));
  table.rows =
      data::hold_out(to_tensors(texts, std::move(numbers), labels, columns.above), columns.test_share);
  return table;
}

}  // namespace tessera::tasks
