#include "tessera/report/sections.h"

#include <fmt/format.h>

namespace tessera::report {

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

train::ReportSection remarks_section(const std::vector<std::string>& remarks) {
  std::string html;
  for (const std::string& remark : remarks) html += fmt::format("<p>{}</p>\n", escape_html(remark));
  return {"Data", html};
}

}  // namespace tessera::report
