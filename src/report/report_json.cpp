#include <cmath>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/report/report.h"

namespace tessera::report {
namespace {

using Json = nlohmann::ordered_json;

// The members by name, once for reading and writing.
template <typename Machine, typename Visit>
void visit_machine(Machine& machine, const Visit& visit) {
  visit("processor", machine.processor);
  visit("physical_cores", machine.physical_cores);
  visit("logical_cores", machine.logical_cores);
  visit("usable_cores", machine.usable_cores);
  visit("memory_bytes", machine.memory_bytes);
  visit("operating_system", machine.operating_system);
  visit("architecture", machine.architecture);
  visit("compiler", machine.compiler);
  visit("tessera_version", machine.tessera_version);
}

template <typename Summary, typename Visit>
void visit_summary(Summary& summary, const Visit& visit) {
  visit("device", summary.device);
  visit("precision", summary.precision);
  visit("task", summary.task);
  visit("network", summary.network);
  visit("parameters", summary.parameters);
  visit("epochs", summary.epochs);
  visit("evaluations", summary.evaluations);
  visit("train_seconds", summary.train_seconds);
  visit("samples_per_second", summary.samples_per_second);
  visit("versions", summary.versions);
}

template <typename Metric, typename Visit>
void visit_metric(Metric& metric, const Visit& visit) {
  visit("name", metric.name);
  visit("percent", metric.percent);
  visit("larger_is_better", metric.larger_is_better);
}

template <typename Section, typename Visit>
void visit_section(Section& section, const Visit& visit) {
  visit("title", section.title);
  visit("html", section.html);
}

template <typename Texts, typename Visit>
void visit_texts(Texts& report, const Visit& visit) {
  visit("data", report.data);
  visit("date", report.date);
  visit("recipe", report.recipe);
  visit("samples", report.samples);
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
  return member.is_null() ? train::kNotMeasured : member.get<double>();
}

struct Reader {
  const Json& object;
  template <typename T>
  void operator()(const char* name, T& value) const {
    value = object.at(name).get<T>();
  }
  void operator()(const char* name, double& value) const { value = number(object.at(name)); }
  void operator()(const char* name, std::map<std::string, train::Numbers>& value) const {
    for (const auto& [evaluation, results] : object.at(name).items()) {
      for (const auto& [metric, result] : results.items()) value[evaluation][metric] = number(result);
    }
  }
};

}  // namespace

std::string to_json(const Report& report) {
  Json json;
  visit_texts(report, Writer{json});
  visit_summary(report.summary, Writer{json["summary"]});
  visit_machine(report.machine, Writer{json["machine"]});
  json["history"] = Json::parse(train::to_json(report.history));
  json["metrics"] = Json::array();
  for (const nn::Metric& metric : report.metrics)
    visit_metric(metric, Writer{json["metrics"].emplace_back()});
  json["sections"] = Json::array();
  for (const train::ReportSection& section : report.sections)
    visit_section(section, Writer{json["sections"].emplace_back()});
  // Names and paths need not be UTF-8; such bytes become U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report report_from_json(std::string_view text, std::string_view name) {
  Report report;
  try {
    const Json json = Json::parse(text);
    visit_texts(report, Reader{json});
    visit_summary(report.summary, Reader{json.at("summary")});
    visit_machine(report.machine, Reader{json.at("machine")});
    report.history = train::history_from_json(json.at("history").dump(), name);
    for (const Json& item : json.at("metrics")) visit_metric(report.metrics.emplace_back(), Reader{item});
    for (const Json& item : json.at("sections")) visit_section(report.sections.emplace_back(), Reader{item});
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_file, "{}: not a report: {}", name, error.what());
  }
  return report;
}

}  // namespace tessera::report
