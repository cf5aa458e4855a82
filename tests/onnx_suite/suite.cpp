// Runs the stored tests of ONNX's operators: their models, inputs and outputs, as the pinned wheel holds
// them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

#include "support/tolerance.h"

namespace {

namespace fs = std::filesystem;
namespace ts = tessera;
using ts::program::Item;

constexpr double kRelative = 1e-3;  // the suite's own tolerances
constexpr double kAbsolute = 1e-7;

// In units in the last place of the wanted number; 0 of types of fewer than 16 bits, whose steps are all
// seen.
double last_places_between(double given, double wanted, ts::DataType type) {
  const double place = std::ldexp(2 * ts::testing::unit_roundoff(type), std::ilogb(wanted));
  return place > 0 ? std::abs(given - wanted) / place : 0;
}

// Of two values that are to be the same, how they differ; "" where they do not. `last_places`: by how many
// units in the last place at most, among elements whose difference is more than the absolute tolerance.
std::string difference(const ts::Tensor& given, const ts::Tensor& wanted, double& last_places) {
  if (given.data_type() != wanted.data_type() || given.shape() != wanted.shape())
    return fmt::format("{}, not {}", to_string(Item(given)), to_string(Item(wanted)));
  if (!is_floating(given.data_type())) return given.identical(wanted) ? "" : "other integers";
  for (int64_t i = 0; i < given.size(); ++i) {
    const double a = given.at(i);
    const double b = wanted.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) > kAbsolute && b != 0 && std::isfinite(b))
      last_places = std::max(last_places, last_places_between(a, b, wanted.data_type()));
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b)) || std::isinf(b))
      return fmt::format("element {} is {:.9g}, not {:.9g}", i, a, b);
  }
  return "";
}

std::string difference(const Item& given, const Item& wanted, double& last_places) {
  if (given.tensor() != nullptr && wanted.tensor() != nullptr)
    return difference(*given.tensor(), *wanted.tensor(), last_places);
  if (given.text() != nullptr && wanted.text() != nullptr)
    return *given.text() == *wanted.text() ? "" : "other texts";
  if (given.sequence() != nullptr && wanted.sequence() != nullptr &&
      given.sequence()->size() == wanted.sequence()->size()) {
    for (size_t i = 0; i < given.sequence()->size(); ++i) {
      const std::string text = difference((*given.sequence())[i], (*wanted.sequence())[i], last_places);
      if (!text.empty()) return text;
    }
    return "";
  }
  if (given.absent() && wanted.absent()) return "";
  return fmt::format("{}, not {}", to_string(given), to_string(wanted));
}

ts::onnx::ValueKind kind_of(const ts::program::Declaration& declaration) {
  if (declaration.type.starts_with("sequence")) return ts::onnx::ValueKind::sequence;
  if (declaration.type.starts_with("optional")) return ts::onnx::ValueKind::optional;
  return ts::onnx::ValueKind::tensor;
}

struct Outcome {
  std::string failure;  // "" when it passed
  std::string first_operator;
  size_t compared = 0;     // outputs
  bool host = false;       // computed a part for a device with memory of its own
  double last_places = 0;  // the largest error
};

void run_set(ts::program::Runner& runner, const fs::path& set, Outcome& outcome) {
  const ts::program::Block& main = *runner.module().main;
  std::map<std::string, Item> inputs;
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const fs::path file = set / fmt::format("input_{}.pb", i);
    if (fs::exists(file)) inputs[main.inputs[i].name] = ts::onnx::load_value(file, kind_of(main.inputs[i]));
  }
  const std::map<std::string, Item> outputs = runner.run(inputs);
  for (size_t i = 0; i < main.outputs.size(); ++i) {
    const fs::path file = set / fmt::format("output_{}.pb", i);
    if (!fs::exists(file)) continue;
    const ts::program::Declaration& output = main.outputs[i];
    ++outcome.compared;
    const std::string text =
        difference(outputs.at(output.name), ts::onnx::load_value(file, kind_of(output)), outcome.last_places);
    if (!text.empty() && outcome.failure.empty())
      outcome.failure = fmt::format("output '{}': {}", output.name, text);
  }
}

Outcome run_test(const fs::path& folder, const std::shared_ptr<ts::Device>& device) {
  Outcome outcome;
  try {
    const auto module = ts::onnx::load(folder / "model.onnx");
    if (!module->main->instructions.empty())
      outcome.first_operator = module->main->instructions[0].operator_name;
    ts::program::Runner runner(module, {.devices = {device}});
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) run_set(runner, entry.path(), outcome);
    }
    if (outcome.compared == 0) outcome.failure = "it has no outputs to compare with";
    for (const ts::program::IslandReport& island : runner.islands())
      outcome.host = outcome.host || island.device == "host" || !island.host_operators.empty();
  } catch (const std::exception& error) {
    outcome.failure = error.what();
  }
  return outcome;
}

struct Arguments {
  fs::path data;
  fs::path expected;  // names of tests that pass, one a line
  fs::path page;      // docs/onnx.md, docs/onnx_gpu.md
  std::string device = "cpu";
  std::string only;
  // Which of how many parts of the tests: on a GPU most of their time is compiling, which several processes
  // do at once for the one that runs all after them.
  size_t part = 0;
  size_t parts = 1;
  bool update = false;
};

// Folders of the package; names of tests in all but the first begin with theirs.
constexpr const char* kCollections[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

std::string collection_of(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == std::string::npos ? kCollections[0] : name.substr(0, slash);
}

std::map<std::string, Outcome> run_all(const Arguments& arguments) {
  std::map<std::string, fs::path> tests;
  for (const std::string collection : kCollections) {
    for (const auto& entry : fs::directory_iterator(arguments.data / collection)) {
      const std::string prefix = collection == kCollections[0] ? "" : collection + "/";
      const std::string name = prefix + entry.path().filename().string();
      const bool wanted = name.find(arguments.only) != std::string::npos;
      if (wanted && fs::exists(entry.path() / "model.onnx")) tests[name] = entry.path();
    }
  }
  const auto device = ts::Device::open(arguments.device);
  std::map<std::string, Outcome> outcomes;
  size_t place = 0;
  for (const auto& [name, folder] : tests) {
    if (place++ % arguments.parts != arguments.part) continue;
    const Outcome& outcome = outcomes[name] = run_test(folder, device);
    if (!arguments.only.empty())
      fmt::print("{}: {}\n", name, outcome.failure.empty() ? "passed" : outcome.failure);
  }
  return outcomes;
}

struct Count {
  size_t passed = 0;
  size_t host = 0;  // of these, where the host computed a part
  size_t all = 0;
  double last_places = 0;  // the largest error of those that pass
};

// Tests by something that is told of each.
template <typename Key>
std::map<std::string, Count> counted_by(const std::map<std::string, Outcome>& outcomes, Key&& key) {
  std::map<std::string, Count> counts;
  for (const auto& [name, outcome] : outcomes) {
    Count& count = counts[key(name)];
    ++count.all;
    count.passed += outcome.failure.empty() ? 1 : 0;
    count.host += outcome.failure.empty() && outcome.host ? 1 : 0;
    if (outcome.failure.empty()) count.last_places = std::max(count.last_places, outcome.last_places);
  }
  return counts;
}

// "node tests: 1700 of 1765"
std::string summary(const std::map<std::string, Outcome>& outcomes) {
  const Count count = counted_by(outcomes, collection_of)[kCollections[0]];
  return fmt::format("node tests: {} of {}", count.passed, count.all);
}

// On a device that is not the host, what the host has part in is told apart.
std::string table(const std::string& title, const std::map<std::string, Count>& counts, bool apart) {
  std::string text = fmt::format("| {} | Passed |{} Tests | Error |\n|---|---|{}---|---|\n", title,
                                 apart ? " of them with the host's part |" : "", apart ? "---|" : "");
  for (const auto& [name, count] : counts)
    text += fmt::format("| {} | {} |{} {} | {:.3g} |\n", name, count.passed,
                        apart ? fmt::format(" {} |", count.host) : "", count.all, count.last_places);
  return text;
}

// The operator that a test is about: that of the test whose expansion it is.
std::string operator_of(const std::string& name, const std::map<std::string, Outcome>& outcomes) {
  const std::string base = name.substr(0, name.find("_expanded"));
  const auto found = outcomes.find(base);
  return (found != outcomes.end() ? found : outcomes.find(name))->second.first_operator;
}

// Without the folder, which is this machine's own.
std::string without_folder(std::string text, const std::string& folder) {
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
    text.erase(at, folder.size());
  return text;
}

// A text in a table of Markdown.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

// What a person wrote: from the second line to where the rest is made.
std::string prose_of(const fs::path& page, const std::string& begin) {
  const std::string text = fs::exists(page) ? ts::read_text_file(page) : "";
  const size_t first = text.find('\n');
  const size_t last = text.find(begin);
  return first == std::string::npos || last == std::string::npos ? "\n"
                                                                 : text.substr(first + 1, last - first - 1);
}

void write_page(const Arguments& arguments, const std::map<std::string, Outcome>& outcomes) {
  const std::string begin = "<!-- from here on made by onnx_suite --update -->";
  std::string page = summary(outcomes) + "\n" + prose_of(arguments.page, begin);
  const bool apart = arguments.device != "cpu";
  page += begin +
          "\n\n\"Error\" is the largest of those that pass, in units in the last place of the output's type; "
          "what "
          "differs by no more\nthan the suite's absolute tolerance of 1e-7 is not counted.\n\n" +
          table("Collection", counted_by(outcomes, collection_of), apart);
  page +=
      "\n## By operator\n\nOf the node tests. One counts for the operator that it is about, and so does its "
      "`_expanded` form.\n\n";
  std::map<std::string, Outcome> node_tests = outcomes;
  std::erase_if(node_tests, [](const auto& entry) { return collection_of(entry.first) != kCollections[0]; });
  page += table(
      "Operator",
      counted_by(node_tests, [&](const std::string& name) { return operator_of(name, node_tests); }), apart);
  page += "\n## What does not pass\n\n| Test | Why |\n|---|---|\n";
  for (const auto& [name, outcome] : outcomes) {
    if (!outcome.failure.empty())
      page += fmt::format("| `{}` | {} |\n", name,
                          cell(without_folder(outcome.failure, arguments.data.string() + "/")));
  }
  ts::write_file(arguments.page, page);
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
    if (found == outcomes.end() && (!arguments.only.empty() || arguments.parts > 1)) continue;
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
  write_page(arguments, outcomes);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  const std::map<std::string, std::string*> texts{{"--device", &arguments.device},
                                                  {"--only", &arguments.only}};
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
                 "[--part I/N] [--only TEXT] [--update]\n");
      return 2;
    }
  }
  if (arguments.parts == 0 || arguments.part >= arguments.parts) {
    fmt::print(stderr, "onnx_suite: --part is 0/N to N-1/N\n");
    return 2;
  }
  if (arguments.update && (!arguments.only.empty() || arguments.parts > 1)) {
    fmt::print(stderr, "onnx_suite: --update is of all tests, not of those that --only or --part names\n");
    return 2;
  }
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "onnx_suite: {}\n", error.what());
    return 1;
  }
}
