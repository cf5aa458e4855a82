#include "tessera/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created =
        std::make_shared<spdlog::logger>("tessera", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_pattern("%^%l%$: %v");
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

void add_log_file(const std::filesystem::path& path) {
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
    file->set_pattern("%l: %v");
    logger().sinks().push_back(std::move(file));
    logger().flush_on(spdlog::level::trace);
  } catch (const spdlog::spdlog_ex& error) {
    fail(ErrorCode::io, "{}: {}", path.string(), error.what());
  }
}

void write_log(LogLevel level, const std::string& message) {
  logger().log(to_spdlog(level), message);
}

}  // namespace tessera
