// The trace event format of Chrome, which Perfetto reads too: slices and counters on one clock, in rows of
// processes. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tessera/base/clock.h"

namespace tessera::cli {

class ChromeTrace {
 public:
  struct Row {
    int process = 0;
    int thread = 0;
  };

  explicit ChromeTrace(Clock::time_point origin) : origin_(origin) {}

  // In the order in which they are to be shown.
  int add_process(const std::string& name);
  Row add_row(int process, const std::string& name);

  // Slices of one row must lie apart or inside each other, the outer one added first.
  void add_slice(Row row, const std::string& name, const TimeSpan& time,
                 const nlohmann::json& arguments = nlohmann::json::object());
  // `values`: a number for each series of the counter from this moment on.
  void add_counter(int process, const std::string& name, Clock::time_point time,
                   const nlohmann::json& values);

  // The whole file; `facts` is what else the reader of the trace should know.
  std::string text(const nlohmann::json& facts) const;

 private:
  double microseconds(Clock::time_point time) const { return TimeSpan{origin_, time}.microseconds(); }
  void add_name(Row row, const char* kind, const std::string& name, int position);

  Clock::time_point origin_;
  int processes_ = 0;
  int threads_ = 0;
  nlohmann::json events_ = nlohmann::json::array();
};

}  // namespace tessera::cli
