#include "tessera/report/pictures.h"

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/image.h"
#include "tessera/report/base64.h"
#include "tessera/report/sections.h"

namespace tessera::report {
namespace {

// Pictures that are neither grey nor RGB are shown by their first channel.
std::vector<std::byte> png_of(const Picture& picture) {
  const auto png = [&](std::span<const uint8_t> pixels, int64_t channels) {
    return data::encode_png(pixels, {picture.height, picture.width, channels});
  };
  if (picture.channels <= 1 || picture.channels == 3) return png(picture.pixels, picture.channels);
  std::vector<uint8_t> first;
  for (size_t i = 0; i < picture.pixels.size(); i += static_cast<size_t>(picture.channels)) {
    first.push_back(picture.pixels[i]);
  }
  return png(first, 1);
}

}  // namespace

std::string picture_source(const Picture& picture) {
  return "data:image/png;base64," + encode_base64(png_of(picture));
}

train::ReportSection gallery_section(const std::string& title, const std::string& note,
                                     const std::vector<Picture>& pictures) {
  std::string html = fmt::format("<p class=\"note\">{}</p><div class=\"gallery\">\n", escape_html(note));
  for (const Picture& picture : pictures) {
    const std::string caption = escape_html(picture.caption);
    const std::string image = fmt::format("<img src=\"{}\" alt=\"{}\">", picture_source(picture), caption);
    html += caption.empty() ? image + "\n"
                            : fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", image, caption);
  }
  return {title, html + "</div>"};
}

}  // namespace tessera::report
