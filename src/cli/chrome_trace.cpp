#include "cli/chrome_trace.h"

#include "cli/json.h"

namespace tessera::cli {

int ChromeTrace::add_process(const std::string& name) {
  const Row row{++processes_, 0};
  add_name(row, "process", name, row.process);
  return row.process;
}

ChromeTrace::Row ChromeTrace::add_row(int process, const std::string& name) {
  const Row row{process, ++threads_};
  add_name(row, "thread", name, row.thread);
  return row;
}

void ChromeTrace::add_name(Row row, const char* kind, const std::string& name, int position) {
  const std::string prefix = kind;
  events_.push_back({{"ph", "M"},
                     {"pid", row.process},
                     {"tid", row.thread},
                     {"name", prefix + "_name"},
                     {"args", {{"name", name}}}});
  events_.push_back({{"ph", "M"},
                     {"pid", row.process},
                     {"tid", row.thread},
                     {"name", prefix + "_sort_index"},
                     {"args", {{"sort_index", position}}}});
}

void ChromeTrace::add_slice(Row row, const std::string& name, const TimeSpan& time,
                            const nlohmann::json& arguments) {
  events_.push_back({{"ph", "X"},
                     {"pid", row.process},
                     {"tid", row.thread},
                     {"name", name},
                     {"ts", microseconds(time.begin)},
                     {"dur", time.microseconds()},
                     {"args", arguments}});
}

void ChromeTrace::add_counter(int process, const std::string& name, Clock::time_point time,
                              const nlohmann::json& values) {
  events_.push_back(
      {{"ph", "C"}, {"pid", process}, {"name", name}, {"ts", microseconds(time)}, {"args", values}});
}

std::string ChromeTrace::text(const nlohmann::json& facts) const {
  const nlohmann::json file = {{"displayTimeUnit", "ms"}, {"otherData", facts}, {"traceEvents", events_}};
  return dump_json(file);
}

}  // namespace tessera::cli
