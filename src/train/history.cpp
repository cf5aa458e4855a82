#include "tessera/train/history.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera::train {
namespace {

using Json = nlohmann::ordered_json;

// The members by name, once for reading and writing.
template <typename Sample, typename Visit>
void visit_sample(Sample& sample, const Visit& visit) {
  visit("step", sample.step);
  visit("epoch", sample.epoch);
  visit("measures", sample.measures);
  visit("learning_rate", sample.learning_rate);
  visit("samples_per_second", sample.samples_per_second);
}

template <typename Row, typename Visit>
void visit_epoch(Row& row, const Visit& visit) {
  visit("stage", row.stage);
  visit("epoch", row.epoch);
  visit("step", row.step);
  visit("measures", row.measures);
  visit("learning_rate", row.learning_rate);
  visit("samples_per_second", row.samples_per_second);
  visit("seconds", row.seconds);
}

template <typename Row, typename Visit>
void visit_evaluation(Row& row, const Visit& visit) {
  visit("name", row.name);
  visit("step", row.step);
  visit("epoch", row.epoch);
  visit("results", row.results);
}

template <typename Change, typename Visit>
void visit_change(Change& change, const Visit& visit) {
  visit("step", change.step);
  visit("key", change.key);
  visit("before", change.before);
  visit("after", change.after);
}

// JSON has neither NaN nor infinity; the library writes both as null.
struct Writer {
  Json& object;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    object[name] = value;
  }
};

double number(const Json& member) {
  return member.is_null() ? kNotMeasured : member.get<double>();
}

struct Reader {
  const Json& object;
  // By reference: a number with a fraction, perhaps beyond 64 bits, is refused and not converted.
  void operator()(const char* name, int64_t& value) const {
    value = object.at(name).get_ref<const int64_t&>();
  }
  void operator()(const char* name, std::string& value) const { value = object.at(name).get<std::string>(); }
  void operator()(const char* name, double& value) const { value = number(object.at(name)); }
  void operator()(const char* name, Numbers& value) const {
    for (const auto& [key, member] : object.at(name).get_ref<const Json::object_t&>())
      value[key] = number(member);
  }
};

// What stood beside the other members while all networks were classifiers: {"train_loss", ...} as {"loss",
// ...}.
Json numbers_of(const Json& item, const std::string& prefix) {
  Json numbers = Json::object();
  for (const char* name : {"loss", "accuracy"}) {
    const auto found = item.find(prefix + name);
    if (found != item.end() && !found->is_null()) numbers[name] = *found;
  }
  return numbers;
}

Json in_present_form(const Json& item, const std::string& prefix) {
  if (!item.contains("images_per_second")) return item;
  Json present = item;
  present["measures"] = numbers_of(item, prefix);
  present["samples_per_second"] = item.at("images_per_second");
  return present;
}

void read_epoch(const Json& item, RunHistory& history) {
  Json present = in_present_form(item, "train_");
  present.emplace("stage", 0);  // of runs before there were any
  visit_epoch(history.epochs.emplace_back(), Reader{present});
  const Json results = numbers_of(item, "test_");
  if (results.empty()) return;
  EvaluationRow& row = history.evaluations.emplace_back();
  row = {.name = "test",
         .step = history.epochs.back().step,
         .epoch = static_cast<double>(history.epochs.back().epoch)};
  for (const auto& [key, value] : results.items()) row.results[key] = number(value);
}

template <typename Rows, typename Visit>
void write_all(Json& json, const Rows& rows, const Visit& visit) {
  json = Json::array();
  for (const auto& row : rows) visit(row, Writer{json.emplace_back(Json::object())});
}

}  // namespace

void RunHistory::truncate(int64_t step) {
  const auto drop = [step](auto& rows) {
    std::erase_if(rows, [&](const auto& row) { return row.step > step; });
  };
  drop(samples);
  drop(epochs);
  drop(evaluations);
  drop(changes);
}

double RunHistory::train_seconds() const {
  double seconds = 0;
  for (const EpochRow& row : epochs) seconds += row.seconds;
  return seconds;
}

std::string to_json(const RunHistory& history) {
  Json json;
  write_all(json["samples"], history.samples,
            [](const auto& row, const Writer& to) { visit_sample(row, to); });
  write_all(json["epochs"], history.epochs, [](const auto& row, const Writer& to) { visit_epoch(row, to); });
  write_all(json["evaluations"], history.evaluations,
            [](const auto& row, const Writer& to) { visit_evaluation(row, to); });
  write_all(json["changes"], history.changes,
            [](const auto& row, const Writer& to) { visit_change(row, to); });
  // File names and paths need not be UTF-8; such bytes become U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunHistory history_from_json(std::string_view text, std::string_view name) {
  RunHistory history;
  try {
    const Json json = Json::parse(text);
    for (const Json& item : json.at("samples"))
      visit_sample(history.samples.emplace_back(), Reader{in_present_form(item, "")});
    for (const Json& item : json.at("epochs")) read_epoch(item, history);
    for (const Json& item : json.value("evaluations", Json::array()))
      visit_evaluation(history.evaluations.emplace_back(), Reader{item});
    for (const Json& item : json.value("changes", Json::array()))
      visit_change(history.changes.emplace_back(), Reader{item});
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_file, "{}: not a training history: {}", name, error.what());
  }
  return history;
}

}  // namespace tessera::train
