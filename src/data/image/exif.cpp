#include "data/image/exif.h"

#include <optional>

namespace tessera::data {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;
constexpr size_t kEntryBytes = 12;

class TiffReader {
 public:
  TiffReader(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  // An unsigned number of so many bytes, where that place exists.
  std::optional<uint32_t> number(size_t offset, size_t count) const {
    if (offset > bytes_.size() || bytes_.size() - offset < count) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t place = big_endian_ ? i : count - 1 - i;
      value = value << 8 | std::to_integer<uint32_t>(bytes_[offset + place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

}  // namespace

int64_t exif_orientation(std::span<const std::byte> tiff) {
  constexpr int64_t kUpright = 1;
  if (tiff.size() < 8) return kUpright;
  const bool big_endian = tiff[0] == std::byte{'M'};
  if (tiff[0] != tiff[1] || (!big_endian && tiff[0] != std::byte{'I'})) return kUpright;
  const TiffReader reader(tiff, big_endian);
  const size_t directory = *reader.number(4, 4);
  const std::optional<uint32_t> entries = reader.number(directory, 2);
  for (uint32_t i = 0; i < entries.value_or(0); ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    const std::optional<uint32_t> tag = reader.number(entry, 2);
    if (!tag.has_value()) break;
    if (*tag != kOrientationTag || reader.number(entry + 2, 2) != kShortType) continue;
    const uint32_t value = reader.number(entry + 8, 2).value_or(0);
    return value >= 1 && value <= 8 ? value : kUpright;
  }
  return kUpright;
}

}  // namespace tessera::data
