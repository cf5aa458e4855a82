// Log lines to standard error, through spdlog, which this header hides so that few files pay for it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tessera {

enum class LogLevel { debug, info, warning, error, off };

void set_log_level(LogLevel level);
// From now on all lines go to the end of that file too. Throws Error(io).
void add_log_file(const std::filesystem::path& path);
void write_log(LogLevel level, const std::string& message);

template <typename... Arguments>
void log_debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log(LogLevel::debug, fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void log_info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log(LogLevel::info, fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log(LogLevel::warning, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace tessera
