// Runs the stored tests of ONNX's operators and networks, as the pinned wheel holds them.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "tessera/base/file.h"

#include "page.h"
#include "stored_test.h"

namespace {

namespace fs = std::filesystem;
namespace ts = tessera;
using ts::onnx_suite::Outcome;
using ts::onnx_suite::summary;

struct Arguments {
  fs::path data;
  fs::path expected;  // names of tests that pass, one a line
  fs::path page;      // docs/onnx.md, docs/onnx_gpu.md
  std::string device = "cpu";
  std::string only;
  std::string without;  // a collection that is left out
  // Which of how many parts of the tests: on a GPU most of their time is compiling, which several processes
  // do at once for the one that runs all after them.
  size_t part = 0;
  size_t parts = 1;
  bool update = false;
};

bool named(const std::string& name, const Arguments& arguments) {
  return name.find(arguments.only) != std::string::npos &&
         (arguments.without.empty() || ts::onnx_suite::collection_of(name) != arguments.without);
}

std::map<std::string, Outcome> run_all(const Arguments& arguments) {
  const auto device = ts::Device::open(arguments.device);
  std::map<std::string, Outcome> outcomes;
  size_t place = 0;
  for (const auto& [name, test] : ts::onnx_suite::find_tests(arguments.data)) {
    if (!named(name, arguments)) continue;
    if (place++ % arguments.parts != arguments.part) continue;
    const Outcome& outcome = outcomes[name] = ts::onnx_suite::run_test(test, device);
    if (!arguments.only.empty())
      fmt::print("{}: {}\n", name, outcome.failure.empty() ? "passed" : outcome.failure);
  }
  return outcomes;
}

std::set<std::string> read_expected(const fs::path& path) {
  std::istringstream text(ts::read_text_file(path));
  std::set<std::string> names;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty()) names.insert(line);
  }
  return names;
}

int compare(const Arguments& arguments, const std::map<std::string, Outcome>& outcomes) {
  int lost = 0;
  const std::set<std::string> expected = read_expected(arguments.expected);
  for (const std::string& name : expected) {
    const auto found = outcomes.find(name);
    if (!named(name, arguments) || (found == outcomes.end() && arguments.parts > 1)) continue;
    if (found != outcomes.end() && found->second.failure.empty()) continue;
    fmt::print("{}: passed before, now: {}\n", name,
               found == outcomes.end() ? "it is gone" : found->second.failure);
    ++lost;
  }
  int won = 0;
  for (const auto& [name, outcome] : outcomes)
    won += outcome.failure.empty() && expected.count(name) == 0 ? 1 : 0;
  if (won > 0)
    fmt::print("{} more tests pass than {} lists; --update lists them\n", won, arguments.expected.string());
  return lost;
}

int run(const Arguments& arguments) {
  const auto began = std::chrono::steady_clock::now();
  const std::map<std::string, Outcome> outcomes = run_all(arguments);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  fmt::print("{} ({} tests in {:.1f} s)\n", summary(outcomes), outcomes.size(), seconds.count());
  if (outcomes.empty()) return 1;  // a test that compares nothing proves nothing
  if (!arguments.update) return compare(arguments, outcomes) == 0 ? 0 : 1;
  std::string list;
  for (const auto& [name, outcome] : outcomes) list += outcome.failure.empty() ? name + "\n" : "";
  ts::write_file(arguments.expected, list);
  ts::onnx_suite::write_page(arguments.page, outcomes, arguments.device != "cpu", arguments.data);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  const std::map<std::string, std::string*> texts{
      {"--device", &arguments.device}, {"--only", &arguments.only}, {"--without", &arguments.without}};
  const std::map<std::string, fs::path*> paths{
      {"--data", &arguments.data}, {"--expected", &arguments.expected}, {"--page", &arguments.page}};
  for (int i = 1; i < count; ++i) {
    const std::string option = values[i];
    if (option == "--update") {
      arguments.update = true;
    } else if (option == "--part" && i + 1 < count) {
      const std::string text = values[++i];
      arguments.part = std::stoul(text);
      arguments.parts = std::stoul(text.substr(text.find('/') + 1));
    } else if (i + 1 < count && texts.count(option) != 0) {
      *texts.at(option) = values[++i];
    } else if (i + 1 < count && paths.count(option) != 0) {
      *paths.at(option) = values[++i];
    } else {
      fmt::print(stderr,
                 "usage: onnx_suite --data FOLDER --expected FILE [--page FILE] [--device NAME] "
                 "[--part I/N] [--only TEXT] [--without COLLECTION] [--update]\n");
      return 2;
    }
  }
  if (arguments.parts == 0 || arguments.part >= arguments.parts) {
    fmt::print(stderr, "onnx_suite: --part is 0/N to N-1/N\n");
    return 2;
  }
  if (arguments.update && (!arguments.only.empty() || !arguments.without.empty() || arguments.parts > 1)) {
    fmt::print(stderr, "onnx_suite: --update is of all tests, not of a part of them\n");
    return 2;
  }
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "onnx_suite: {}\n", error.what());
    return 1;
  }
}
