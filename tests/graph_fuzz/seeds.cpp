#include "graph_fuzz/seeds.h"

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "graph_fuzz/configuration.h"

namespace tessera::testing {
namespace {

using Range = std::pair<uint64_t, uint64_t>;

constexpr uint64_t kSeedsOfAProgressLine = 10;

std::optional<Range> parse_range(std::string_view text) {
  const auto parse = [](std::string_view part) -> std::optional<uint64_t> {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    return error == std::errc() && end == part.data() + part.size() ? std::optional(number) : std::nullopt;
  };
  const size_t dash = text.find('-');
  const auto first = parse(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse(text.substr(dash + 1));
  if (!first.has_value() || !last.has_value() || *first > *last) return std::nullopt;
  return Range{*first, *last};
}

std::optional<Range>& asked_on_command_line() {
  static std::optional<Range> range;
  return range;
}

std::optional<Range> asked_range() {
  if (asked_on_command_line().has_value()) return asked_on_command_line();
  for (const char* name : {"TESSERA_GRAPH_SEED", "TESSERA_GRAPH_SEEDS"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const std::optional<Range> range = parse_range(text);
    if (!range.has_value()) ADD_FAILURE() << name << " is '" << text << "', expected SEED or FIRST-LAST";
    return range.value_or(Range{1, 0});
  }
  return std::nullopt;
}

// What a signal's handler prints: made before, since a handler may not allocate.
std::array<char, 256> command{};

extern "C" void report_signal(int signal) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, command.data(), std::strlen(command.data()));
  std::signal(signal, SIG_DFL);
  raise(signal);
}

std::string message_of(uint64_t seed, const std::function<std::string(uint64_t)>& check) {
  try {
    return check(seed);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

bool ask_for_seeds(const std::string& text) {
  asked_on_command_line() = parse_range(text);
  return asked_on_command_line().has_value();
}

void try_seeds(const std::string& test, double seconds, const std::function<std::string(uint64_t)>& check,
               const std::function<bool()>& broken) {
  const std::optional<Range> asked = asked_range();
  const auto [first, last] = asked.value_or(Range{1, UINT64_MAX});
  std::vector<uint64_t> failed;
  uint64_t tried = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, report_signal);
  for (uint64_t seed = first; seed <= last; ++seed) {
    if (!asked.has_value() && tried > 0 && passed() > seconds) break;
    const std::string repeat = fmt::format("repeat it by: TESSERA_GRAPH_SEED={} ./test '{}'\n", seed, test);
    std::strncpy(command.data(), repeat.c_str(), command.size() - 1);
    const std::string message = message_of(seed, check);
    ++tried;
    if (asked.has_value() && tried % kSeedsOfAProgressLine == 0)
      std::cout << fmt::format("{}: {}-{} done, {} failed, {:.0f} s", test, first, seed, failed.size(),
                               passed())
                << std::endl;
    if (message.empty()) continue;
    failed.push_back(seed);
    ADD_FAILURE() << "seed " << seed << " (" << to_string(draw_configuration(seed)) << "): " << message
                  << "\n"
                  << repeat;
    if (broken && broken()) {
      ADD_FAILURE() << "the device is of no use any more: seeds from " << seed + 1 << " on were not tried";
      break;
    }
  }
  std::cout << fmt::format("{}: {} seeds in {:.0f} s, {} failed{}{}\n", test, tried, passed(), failed.size(),
                           failed.empty() ? "" : ": ", fmt::join(failed, ", "));
  ::testing::Test::RecordProperty("seeds", static_cast<int>(tried));
  EXPECT_GE(tried, 1U) << "no seed was tried";
}

}  // namespace tessera::testing
