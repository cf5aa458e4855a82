// Any bytes either are refused with an Error or are an image, of which any part can be asked for.
#include <cstdlib>
#include <span>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/image.h"

#include "fuzz.h"

// The first bytes choose the part and the result, the rest is the file.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kChoices = 8;
  if (size < kChoices) return 0;
  using tessera::data::ResizeFilter;
  try {
    tessera::data::EncodedImage image(std::as_bytes(std::span(data, size).subspan(kChoices)), "input",
                                      {.pixels = 1 << 16});
    const tessera::data::ImageInfo& info = image.info();
    if (info.height <= 0 || info.width <= 0 || info.height > (1 << 16) / info.width) std::abort();
    tessera::data::Rectangle crop{.top = data[0] % info.height, .left = data[1] % info.width};
    crop.height = 1 + data[2] % (info.height - crop.top);
    crop.width = 1 + data[3] % (info.width - crop.left);
    tessera::data::DecodeOptions options{.crop = crop,
                                         .height = 1 + data[4] % 32,
                                         .width = 1 + data[5] % 32,
                                         .channels = data[6] % 2 == 0 ? 3 : 1,
                                         .filter = static_cast<ResizeFilter>(data[6] / 2 % 4),
                                         .mirrored = data[7] % 2 == 1,
                                         .scaled = data[7] / 2 % 2 == 1};
    std::vector<uint8_t> pixels(static_cast<size_t>(options.height * options.width * options.channels));
    image.decode(options, pixels);
  } catch (const tessera::Error& error) {
    if (error.code() != tessera::ErrorCode::invalid_file) std::abort();
  }
  return 0;
}
