// What a device has that decodes JPEG files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/compile/queue.h"

namespace tessera {

// A whole image that a device has decoded, in its memory.
class KeptJpeg {
 public:
  virtual ~KeptJpeg() = default;
};

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
  uint8_t* pixels = nullptr;  // [H, W, 3] on the device
  bool keep = false;          // the whole image, for parts of it that are wanted later
  // The file's image as this device has kept it: `bytes` are not read then.
  std::shared_ptr<const KeptJpeg> kept = nullptr;
};

// Files that a device has begun to decode.
struct JpegsUnderWay {
  std::vector<bool> taken;  // of the parts; the others are for the host
  // When the pixels of those that were taken are there. Null: they are.
  std::shared_ptr<Event> done = nullptr;
  // Of the parts that were to be kept and were taken. Their images may be asked for before they are there.
  std::vector<std::shared_ptr<const KeptJpeg>> kept = {};
};

// Where the time of decoding went so far, in seconds of all threads together that asked for it.
struct JpegDecodingTimes {
  int64_t files = 0;
  double turn = 0;     // until fewer others decoded
  double device = 0;   // until the device had done what was before
  double parsing = 0;  // of headers
  double giving = 0;   // the work to the device, with what the decoder's library does on the host
};

// An extension of a device. What it decodes stays in its memory, where the batch is wanted.
class JpegDecoding {
 public:
  virtual ~JpegDecoding() = default;

  // Decodes the parts and resizes each into [height, width, 3], bilinear with antialiasing, equal to
  // data::resize_image() of the same decoded pixels within one gray level. The device does so beside its
  // other work, and after it where both want the same. Pixels of parts that its decoder does not take stay
  // as they are. `files` is what keeps the parts' bytes until they have been read. Any thread may call it.
  // Whole images that are to be kept take a few MiB more than their pixels.
  // Throws Error(unsupported) where the decoder's library is missing, Error(out_of_memory) and
  // Error(device_fault); nothing is written any more then.
  virtual JpegsUnderWay decode_jpegs(std::span<const JpegPart> parts, int64_t height, int64_t width,
                                     std::shared_ptr<const void> files) = 0;

  virtual JpegDecodingTimes decoding_times() const = 0;
};

}  // namespace tessera
