#include "recipe/evaluation_folder.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/data/safetensors.h"

namespace tessera::recipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTaken = "taken.safetensors";
constexpr const char* kResults = "results.json";
constexpr const char* kEnded = "training.json";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

std::optional<int64_t> step_of_name(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  return parse_integer(
      std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
}

// By their steps.
std::map<int64_t, fs::path> waiting_in(const fs::path& folder) {
  std::map<int64_t, fs::path> waiting;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
    if (const auto step = step_of_name(entry.path().filename().string()))
      waiting.emplace(*step, entry.path());
  }
  return waiting;
}

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

WaitingWeights described(const fs::path& path) {
  const std::map<std::string, std::string> metadata = data::SafetensorsFile::open(path).metadata();
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    require(found != metadata.end(), ErrorCode::invalid_file, "{}: '{}' is missing", path.string(), key);
    return found->second;
  };
  const auto integer = [&](const char* key) {
    const std::optional<int64_t> value = parse_integer(text(key));
    require(value.has_value(), ErrorCode::invalid_file, "{}: '{}' is '{}', no count", path.string(), key,
            text(key));
    return *value;
  };
  return {.path = path,
          .name = text("evaluation"),
          .step = integer("step"),
          .epoch = parse_real(text("epoch")).value_or(train::kNotMeasured),
          .stage = integer("stage"),
          .stage_step = integer("stage_step"),
          .batch = integer("batch"),
          .recipe = text("recipe"),
          .training = text("training"),
          .begin = integer("begin")};
}

}  // namespace

void EvaluationFolder::begin(int64_t step) const {
  make_folder(path_);
  std::vector<fs::path> stale{path_ / kEnded};
  if (step == 0) stale.push_back(path_ / kResults);
  for (const auto& [of_step, path] : waiting_in(path_)) {
    if (of_step > step) stale.push_back(path);
  }
  std::error_code ignored;
  for (const fs::path& path : stale) fs::remove(path, ignored);
}

void EvaluationFolder::add(const train::DueEvaluation& due,
                           const std::map<std::string, std::string>& metadata) const {
  CheckpointSource weights = due.weights;
  weights.metadata.insert(metadata.begin(), metadata.end());
  weights.metadata.insert({{"evaluation", due.name},
                           {"step", std::to_string(due.step)},
                           {"epoch", fmt::format("{}", due.epoch)},
                           {"stage", std::to_string(due.stage.index)},
                           {"stage_step", std::to_string(due.stage.step)}});
  save(weights, path_ / fmt::format("{}{:08}{}", kPrefix, due.step, kSuffix));
}

int64_t EvaluationFolder::waiting() const {
  return std::ssize(waiting_in(path_));
}

void EvaluationFolder::end(const report::Report& report) const {
  write_file(path_ / kEnded, report::to_json(report));
}

// Renamed, so that weights of that step which the training writes meanwhile are others.
std::optional<WaitingWeights> EvaluationFolder::take() const {
  const fs::path taken = path_ / kTaken;
  if (!is_present(taken)) {
    const std::map<int64_t, fs::path> waiting = waiting_in(path_);
    if (waiting.empty()) return std::nullopt;
    std::error_code error;
    fs::rename(waiting.begin()->second, taken, error);
    if (error) return std::nullopt;  // a training that began anew has just removed it
  }
  return described(taken);
}

void EvaluationFolder::remove(const WaitingWeights& weights) const {
  std::error_code ignored;
  fs::remove(weights.path, ignored);
}

FoundResults EvaluationFolder::results() const {
  const fs::path path = path_ / kResults;
  if (!is_present(path)) return {};
  try {
    const auto json = nlohmann::ordered_json::parse(read_text_file(path));
    return {.training = json.at("training").get<std::string>(),
            .report = report::report_from_json(json.at("report").dump(), path.string())};
  } catch (const nlohmann::ordered_json::exception& error) {
    fail(ErrorCode::invalid_file, "{}: no results: {}", path.string(), error.what());
  }
}

void EvaluationFolder::keep(const FoundResults& results) const {
  const nlohmann::ordered_json json{
      {"training", results.training},
      {"report", nlohmann::ordered_json::parse(report::to_json(results.report))}};
  write_file(path_ / kResults, json.dump() + "\n");
}

std::optional<report::Report> EvaluationFolder::ended() const {
  const fs::path path = path_ / kEnded;
  if (!is_present(path)) return std::nullopt;
  return report::report_from_json(read_text_file(path), path.string());
}

}  // namespace tessera::recipe
