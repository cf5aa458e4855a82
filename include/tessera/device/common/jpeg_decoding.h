// What a device has that decodes JPEG files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

// A part of a JPEG file, and where an image made of it belongs. The file is baseline, of three channels. The
// part lies inside of the stored image; its rows and columns are reversed first, and then exchanged.
struct JpegPart {
  std::span<const std::byte> bytes = {};  // of the file
  int64_t stored_height = 0;              // of the whole image, as the file has it
  int64_t stored_width = 0;
  int64_t top = 0;  // of the part
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool rows_reversed = false;
  bool columns_reversed = false;
  bool transposed = false;
  uint8_t* pixels =
      nullptr;  // [H, W, 3] on the host, of a batch that Device::allocate_pinned() has memory of
};

// An extension of a device. Pixels come back to the batch's memory, beside those that the host decodes, so
// that a batch is the same thing wherever it was decoded.
class JpegDecoding {
 public:
  virtual ~JpegDecoding() = default;

  // Decodes the parts and resizes each into [height, width, 3], bilinear with antialiasing, equal to
  // data::resize_image() of the same decoded pixels within one gray level. Returns which of them were; the
  // others, which the device's decoder does not take, are for the host, and their pixels are undefined. Any
  // thread may call it. Throws Error(unsupported) where the decoder's library is missing,
  // Error(out_of_memory) and Error(device_fault).
  virtual std::vector<bool> decode_jpegs(std::span<const JpegPart> parts, int64_t height, int64_t width) = 0;
};

}  // namespace tessera
