// Pictures in a report.
#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/report/png.h"
#include "tessera/report/sections.h"

#include "report/report_chart.h"
#include "report/report_parts.h"

namespace tessera::report {
namespace {

// Pictures that are neither grey nor RGB are shown by their first channel.
std::string png_of(const Picture& picture) {
  if (picture.channels <= 1 || picture.channels == 3) {
    return encode_png(picture.pixels, picture.height, picture.width, picture.channels);
  }
  std::vector<uint8_t> first;
  for (size_t i = 0; i < picture.pixels.size(); i += static_cast<size_t>(picture.channels)) {
    first.push_back(picture.pixels[i]);
  }
  return encode_png(first, picture.height, picture.width, 1);
}

}  // namespace

std::string picture_source(const Picture& picture) {
  return "data:image/png;base64," + encode_base64(png_of(picture));
}

train::ReportSection gallery_section(const std::string& title, const std::string& note,
                                     const std::vector<Picture>& pictures) {
  std::string html = fmt::format("<p class=\"note\">{}</p><div class=\"gallery\">\n", escape_html(note));
  for (const Picture& picture : pictures)
    html += fmt::format("<img src=\"{}\" alt=\"\">\n", picture_source(picture));
  return {title, html + "</div>"};
}

train::ReportSection remarks_section(const std::vector<std::string>& remarks) {
  std::string html;
  for (const std::string& remark : remarks) html += fmt::format("<p>{}</p>\n", escape_html(remark));
  return {"Data", html};
}

}  // namespace tessera::report
