#include "recipe/toml_limits.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tessera::recipe {
namespace {

constexpr int kMaximumParts = 16;    // of one key, and of one table's name
constexpr int kMaximumNesting = 16;  // of lists and inline tables

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<TomlExcess> run() {
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        position_ = std::min(text_.find('\n', position_), text_.size());
        continue;
      }
      ++position_;
      count(c);
      if (dots_ >= kMaximumParts) return excess(fmt::format("a key has more than {} parts", kMaximumParts));
      if (depth_ > kMaximumNesting)
        return excess(fmt::format("lists and tables are nested more than {} deep", kMaximumNesting));
    }
    return std::nullopt;
  }

 private:
  TomlExcess excess(std::string what) const {
    const std::string_view before = text_.substr(0, position_ - 1);
    return {1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n')), std::move(what)};
  }

  void count(char c) {
    switch (c) {
      case '.':  // of a key or of a number
        ++dots_;
        break;
      case '[':
      case '{':
        ++depth_;
        dots_ = 0;
        break;
      case ']':
      case '}':
        depth_ = std::max(depth_ - 1, 0);
        dots_ = 0;
        break;
      case '=':
      case ',':
      case '\n':
        dots_ = 0;
        break;
      default:
        break;
    }
  }

  // A text of one line ends there at the latest: without its closing quote the document is at fault.
  void skip_string(char quote) {
    const size_t delimiter = text_.substr(position_).starts_with(std::string(3, quote)) ? 3 : 1;
    for (position_ += delimiter; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '\\' && quote == '"') {
        ++position_;
      } else if (c == quote && quotes_here(quote) >= delimiter) {
        // Two more at the end of a text of several lines belong to it.
        position_ += delimiter == 1 ? 1 : std::min<size_t>(quotes_here(quote), 5);
        return;
      } else if (c == '\n' && delimiter == 1) {
        return;
      }
    }
    position_ = text_.size();
  }

  size_t quotes_here(char quote) const {
    return std::min(text_.find_first_not_of(quote, position_), text_.size()) - position_;
  }

  std::string_view text_;
  size_t position_ = 0;
  int dots_ = 0;   // since the last character that no key holds
  int depth_ = 0;  // of open brackets and braces
};

}  // namespace

std::optional<TomlExcess> find_toml_excess(std::string_view text) {
  return Scanner(text).run();
}

}  // namespace tessera::recipe
