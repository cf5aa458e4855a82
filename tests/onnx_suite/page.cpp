#include "page.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/file.h"

namespace tessera::onnx_suite {

namespace {

namespace fs = std::filesystem;

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
  const std::string text = fs::exists(page) ? read_text_file(page) : "";
  const size_t first = text.find('\n');
  const size_t last = text.find(begin);
  return first == std::string::npos || last == std::string::npos ? "\n"
                                                                 : text.substr(first + 1, last - first - 1);
}

}  // namespace

std::string summary(const std::map<std::string, Outcome>& outcomes) {
  const Count count = counted_by(outcomes, collection_of)[kCollections[0]];
  return fmt::format("node tests: {} of {}", count.passed, count.all);
}

void write_page(const fs::path& page, const std::map<std::string, Outcome>& outcomes, bool apart,
                const fs::path& data) {
  const std::string begin = "<!-- from here on made by onnx_suite --update -->";
  std::string text = summary(outcomes) + "\n" + prose_of(page, begin);
  text += begin +
          "\n\n\"Error\" is the largest of those that pass, in units in the last place of the output's type; "
          "what "
          "differs by no more\nthan the suite's absolute tolerance of 1e-7 is not counted.\n\n" +
          table("Collection", counted_by(outcomes, collection_of), apart);
  text +=
      "\n## By operator\n\nOf the node tests. One counts for the operator that it is about, and so does its "
      "`_expanded` form.\n\n";
  std::map<std::string, Outcome> node_tests = outcomes;
  std::erase_if(node_tests, [](const auto& entry) { return collection_of(entry.first) != kCollections[0]; });
  text += table(
      "Operator",
      counted_by(node_tests, [&](const std::string& name) { return operator_of(name, node_tests); }), apart);
  text += "\n## What does not pass\n\n| Test | Why |\n|---|---|\n";
  for (const auto& [name, outcome] : outcomes) {
    if (!outcome.failure.empty())
      text +=
          fmt::format("| `{}` | {} |\n", name, cell(without_folder(outcome.failure, data.string() + "/")));
  }
  write_file(page, text);
}

}  // namespace tessera::onnx_suite
