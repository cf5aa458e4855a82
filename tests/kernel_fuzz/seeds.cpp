#include "kernel_fuzz/seeds.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera::testing {
namespace {

constexpr unsigned kSecondsPerSeed = 300;  // a sanitizer's too

struct Seeds {
  uint64_t first = 1;
  uint64_t last = 0;
};

std::optional<Seeds>& asked_seeds() {
  static std::optional<Seeds> seeds;
  return seeds;
}

std::string& program() {
  static std::string path = "kernel_fuzz_tests";
  return path;
}

// What a signal's handler prints: made before, since a handler may not allocate.
using Note = std::array<char, 4096>;
Note repeat{};
Note running{};

void keep(Note& note, const std::string& text) {
  std::strncpy(note.data(), text.c_str(), note.size() - 1);
}

void say_how_to_repeat(uint64_t seed) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string text = fmt::format("\nreproduce it by: {} --gtest_filter={}.{} --seeds {}-{}\n",
                                       program(), test->test_suite_name(), test->name(), seed, seed);
  std::strncpy(repeat.data(), text.c_str(), repeat.size() - 1);
}

extern "C" void report_signal(int signal) {
  const char* what = signal == SIGALRM ? "\nit does not end: " : "\nit ended the program: ";
  for (const char* text :
       {what, static_cast<const char*>(running.data()), static_cast<const char*>(repeat.data())})
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  std::signal(signal, SIG_DFL);
  raise(signal);
}

bool parse_seeds(std::string_view text) {
  const std::string copy(text);
  char* rest = nullptr;
  Seeds seeds;
  seeds.first = std::strtoull(copy.c_str(), &rest, 10);
  const bool has_first = rest != copy.c_str() && *rest == '-';
  if (has_first) {
    const char* last = rest + 1;
    seeds.last = std::strtoull(last, &rest, 10);
    if (rest != last && *rest == '\0' && seeds.last >= seeds.first) {
      asked_seeds() = seeds;
      return true;
    }
  }
  std::cerr << "seeds are FIRST-LAST, two whole numbers, not '" << text << "'\n";
  return false;
}

int failures() {
  return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

// False after a failure.
bool try_seed(uint64_t seed, const std::function<int64_t(uint64_t seed)>& work, int64_t& problems) {
  say_how_to_repeat(seed);
  alarm(kSecondsPerSeed);
  const int before = failures();
  try {
    problems += work(seed);
  } catch (const std::exception& error) {
    ADD_FAILURE() << running.data() << ": " << error.what();
  }
  alarm(0);
  if (failures() == before) return true;
  ADD_FAILURE() << repeat.data();
  return false;
}

}  // namespace

void announce(const std::string& what) {
  keep(running, what);
}

bool read_seeds(int argc, char** argv) {
  program() = argv[0];
  if (const char* seeds = std::getenv("TESSERA_KERNEL_SEEDS")) {
    if (!parse_seeds(seeds)) return false;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seeds" && i + 1 < argc) {
      if (!parse_seeds(argv[++i])) return false;
    } else if (!argument.starts_with("--gtest_")) {
      std::cerr << "usage: " << argv[0] << " [--seeds FIRST-LAST] [--gtest_...]\n";
      return false;
    }
  }
  return true;
}

void for_each_seed(double seconds, const std::function<int64_t(uint64_t seed)>& work,
                   const std::function<bool()>& may_go_on) {
  constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
  std::array<void (*)(int), kSignals.size()> handlers{};
  for (size_t i = 0; i < kSignals.size(); ++i) handlers[i] = std::signal(kSignals[i], report_signal);
  const std::optional<Seeds>& asked = asked_seeds();
  const auto start = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds;
  };
  uint64_t seed = asked.has_value() ? asked->first : 1;
  int64_t problems = 0;
  uint64_t tried = 0;
  bool goes_on = true;
  for (; goes_on && (asked.has_value() ? seed <= asked->last : in_time()); ++seed, ++tried)
    goes_on = try_seed(seed, work, problems) || (may_go_on && may_go_on());
  for (size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], handlers[i]);
  std::cout << fmt::format("{} seeds, {} problems\n", tried, problems);
  EXPECT_GE(tried, 1U) << "no seed was tried";
}

std::optional<uint64_t> last_seed() {
  return asked_seeds().has_value() ? std::optional(asked_seeds()->last) : std::nullopt;
}

void for_each_problem(const Device& device, double seconds,
                      const std::function<void(const KernelProblem& problem)>& check) {
  for_each_seed(seconds, [&](uint64_t seed) {
    const std::vector<KernelProblem> problems = draw_problems(seed, device);
    for (const KernelProblem& problem : problems) check(problem);
    return static_cast<int64_t>(problems.size());
  });
}

}  // namespace tessera::testing
