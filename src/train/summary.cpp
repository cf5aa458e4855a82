#include "tessera/train/summary.h"

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

namespace tessera::train {
namespace {

using Json = nlohmann::ordered_json;

// The members by name, once for reading and writing.
template <typename Sample, typename Visit>
void visit_sample(Sample& sample, const Visit& visit) {
  visit("step", sample.step);
  visit("epoch", sample.epoch);
  visit("loss", sample.loss);
  visit("accuracy", sample.accuracy);
  visit("learning_rate", sample.learning_rate);
  visit("images_per_second", sample.images_per_second);
}

template <typename Row, typename Visit>
void visit_row(Row& row, const Visit& visit) {
  visit("epoch", row.epoch);
  visit("step", row.step);
  visit("train_loss", row.train_loss);
  visit("train_accuracy", row.train_accuracy);
  visit("test_loss", row.test_loss);
  visit("test_accuracy", row.test_accuracy);
  visit("learning_rate", row.learning_rate);
  visit("images_per_second", row.images_per_second);
  visit("seconds", row.seconds);
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

struct Reader {
  const Json& object;
  // By reference: a number with a fraction, perhaps beyond 64 bits, is refused and not converted.
  void operator()(const char* name, int64_t& value) const {
    value = object.at(name).get_ref<const int64_t&>();
  }
  void operator()(const char* name, std::string& value) const { value = object.at(name).get<std::string>(); }
  void operator()(const char* name, double& value) const {
    const Json& member = object.at(name);
    value = member.is_null() ? kNotMeasured : member.get<double>();
  }
};

// File names and paths need not be UTF-8; such bytes become U+FFFD.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void RunHistory::truncate(int64_t step) {
  std::erase_if(samples, [&](const StepSample& sample) { return sample.step > step; });
  std::erase_if(epochs, [&](const EpochRow& row) { return row.step > step; });
  std::erase_if(changes, [&](const SettingChange& change) { return change.step > step; });
}

double RunHistory::train_seconds() const {
  double seconds = 0;
  for (const EpochRow& row : epochs) seconds += row.seconds;
  return seconds;
}

std::string to_json(const RunHistory& history) {
  Json json{{"samples", Json::array()}, {"epochs", Json::array()}, {"changes", Json::array()}};
  for (const StepSample& sample : history.samples) {
    visit_sample(sample, Writer{json["samples"].emplace_back(Json::object())});
  }
  for (const EpochRow& row : history.epochs)
    visit_row(row, Writer{json["epochs"].emplace_back(Json::object())});
  for (const SettingChange& change : history.changes)
    visit_change(change, Writer{json["changes"].emplace_back(Json::object())});
  return dump(json, -1);
}

RunHistory history_from_json(std::string_view text, std::string_view name) {
  RunHistory history;
  try {
    const Json json = Json::parse(text);
    for (const Json& item : json.at("samples")) visit_sample(history.samples.emplace_back(), Reader{item});
    for (const Json& item : json.at("epochs")) visit_row(history.epochs.emplace_back(), Reader{item});
    for (const Json& item : json.value("changes", Json::array()))
      visit_change(history.changes.emplace_back(), Reader{item});
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_file, "{}: not a training history: {}", name, error.what());
  }
  return history;
}

std::string to_json(const RunSummary& summary) {
  const Json json{{"device", summary.device},
                  {"precision", summary.precision},
                  {"network", summary.network},
                  {"parameters", summary.parameters},
                  {"epochs", summary.epochs},
                  {"test_accuracy", summary.test_accuracy},
                  {"train_seconds", summary.train_seconds},
                  {"images_per_second", summary.images_per_second},
                  {"versions", summary.versions}};
  return dump(json, 2);
}

void write_summary(const std::filesystem::path& path, const RunSummary& summary) {
  write_file(path, to_json(summary));
}

}  // namespace tessera::train
