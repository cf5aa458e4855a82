// What is to be held of pages and parts of them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace tessera::testing {

inline size_t count(const std::string& page, const std::string& text) {
  size_t found = 0;
  for (size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + text.size())) ++found;
  return found;
}

inline bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The first element that is not closed where it should be, or "".
inline std::string unbalanced(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    if (end == std::string::npos) return page.substr(at, 40);
    const bool closing = page[at + 1] == '/';
    const size_t start = at + (closing ? 2 : 1);
    const std::string name = page.substr(start, page.find_first_of(" />\n", start) - start);
    const bool is_void =
        name == "!DOCTYPE" || is_one_of(name, {"meta", "link", "img"}) || page[end - 1] == '/';
    if (closing && (open.empty() || open.back() != name)) return page.substr(at, 40);
    if (closing) open.pop_back();
    if (!closing && !is_void) open.push_back(name);
    at = is_one_of(name, {"style", "script"}) && !closing ? page.find("</" + name, end) : end;
  }
  return open.empty() ? "" : "<" + open.back();
}

}  // namespace tessera::testing
