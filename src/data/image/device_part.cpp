#include "data/image/device_part.h"

#include "data/image/orientation.h"

namespace tessera::data {
namespace {

bool has_end(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[bytes.size() - 2] == std::byte{0xFF} && bytes.back() == std::byte{0xD9};
}

}  // namespace

bool is_for_device(const ImageInfo& info, std::span<const std::byte> bytes, const DecodeOptions& options) {
  return info.format == ImageFormat::jpeg && !info.progressive && info.ycbcr && info.bits == 8 &&
         options.channels == 3 && options.filter == ResizeFilter::bilinear && has_end(bytes);
}

JpegPart device_part(const ImageInfo& info, const DecodeOptions& options) {
  const Turn turn = turn_of(info.orientation);
  JpegPart part{.stored_height = turn.transposed ? info.width : info.height,
                .stored_width = turn.transposed ? info.height : info.width};
  const Rectangle stored =
      stored_part(*options.crop, info.orientation, part.stored_height, part.stored_width);
  part.top = stored.top;
  part.left = stored.left;
  part.height = stored.height;
  part.width = stored.width;
  // Mirroring exchanges what are columns when the image is upright.
  part.rows_reversed = turn.from_bottom != (options.mirrored && turn.transposed);
  part.columns_reversed = turn.from_right != (options.mirrored && !turn.transposed);
  part.transposed = turn.transposed;
  return part;
}

}  // namespace tessera::data
