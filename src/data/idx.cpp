#include "tessera/data/idx.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"

namespace tessera::data {
namespace {

struct ElementCode {
  uint8_t code;
  size_t bytes;
  DataType type;  // of the tensor
};
constexpr ElementCode kElementCodes[] = {
    {0x08, 1, DataType::uint8}, {0x09, 1, DataType::int8}, {0x0B, 2, DataType::int16},
    {0x0C, 4, DataType::int32}, {0x0D, 4, DataType::fp32}, {0x0E, 8, DataType::fp64},
};

struct Header {
  ElementCode element;
  Shape shape;
  uint64_t header_bytes;
  uint64_t data_bytes;
};

// An unsigned big-endian number.
template <typename Word>
Word load_big_endian(const std::byte* bytes) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i)
    word = static_cast<Word>((word << 8) | static_cast<Word>(std::to_integer<uint8_t>(bytes[i])));
  return word;
}

template <typename Word>
void append_big_endian(std::vector<std::byte>& bytes, Word word) {
  for (size_t i = sizeof(Word); i-- > 0;) bytes.push_back(static_cast<std::byte>(word >> (8 * i)));
}

Header parse_header(std::span<const std::byte> bytes, std::string_view name, uint64_t maximum_bytes) {
  require(bytes.size() >= 4, ErrorCode::invalid_file,
          "{}: truncated IDX file: {} bytes, the header alone takes 4 and more", name, bytes.size());
  const auto magic = load_big_endian<uint32_t>(bytes.data());
  require(magic >> 16 == 0, ErrorCode::invalid_file,
          "{}: not an IDX file: it begins with 0x{:08x}, expected 0x0000TTRR (element type, rank)", name,
          magic);
  const uint32_t code = (magic >> 8) & 0xff;
  const auto* element = std::find_if(std::begin(kElementCodes), std::end(kElementCodes),
                                     [&](const ElementCode& candidate) { return candidate.code == code; });
  require(element != std::end(kElementCodes), ErrorCode::invalid_file,
          "{}: IDX element type 0x{:02x} is unknown, expected one of 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e",
          name, code);
  const uint32_t rank = magic & 0xff;
  require(rank > 0, ErrorCode::invalid_file, "{}: IDX rank is 0, expected at least one axis", name);

  Header header{*element, {}, 4 + uint64_t{4} * rank, element->bytes};
  require(bytes.size() >= header.header_bytes, ErrorCode::invalid_file,
          "{}: truncated IDX file: {} bytes, a header of {} axes takes {}", name, bytes.size(), rank,
          header.header_bytes);
  for (uint32_t axis = 0; axis < rank; ++axis)
    header.shape.push_back(load_big_endian<uint32_t>(bytes.data() + 4 + 4 * axis));
  // Empty axes count as one here, so that the product of the others cannot overflow unseen.
  for (int64_t extent : header.shape) {
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(extent, 1));
    require(!__builtin_mul_overflow(header.data_bytes, factor, &header.data_bytes) &&
                header.data_bytes <= maximum_bytes,
            ErrorCode::invalid_file, "{}: IDX shape {} takes more than the {} that are allowed here", name,
            to_string(header.shape), format_bytes(static_cast<double>(maximum_bytes)));
  }
  if (element_count(header.shape) == 0) header.data_bytes = 0;
  return header;
}

template <typename Word, typename Element>
void convert(const std::byte* source, std::span<Element> target) {
  for (size_t i = 0; i < target.size(); ++i) {
    const auto word = load_big_endian<Word>(source + i * sizeof(Word));
    target[i] = std::bit_cast<Element>(word);
  }
}

void convert_elements(uint8_t code, const std::byte* source, Tensor& target) {
  switch (code) {
    case 0x0B:
      return convert<uint16_t>(source, target.data<int16_t>());
    case 0x0C:
      return convert<uint32_t>(source, target.data<int32_t>());
    case 0x0D:
      return convert<uint32_t>(source, target.data<float>());
    case 0x0E:
      return convert<uint64_t>(source, target.data<double>());
    default:
      if (target.bytes() > 0) std::memcpy(target.raw(), source, target.bytes());
  }
}

}  // namespace

Tensor parse_idx(std::span<const std::byte> bytes, std::string_view name, uint64_t maximum_bytes) {
  if (is_gzip(bytes)) {
    // The header first: then a bomb is known by its length before it is decompressed.
    constexpr uint64_t kLargestHeader = 4 + 4 * 255;
    const Header header = parse_header(gunzip_prefix(bytes, name, kLargestHeader), name, maximum_bytes);
    const std::vector<std::byte> plain = gunzip(bytes, name, header.header_bytes + header.data_bytes);
    return parse_idx(plain, name, maximum_bytes);
  }
  const Header header = parse_header(bytes, name, maximum_bytes);
  const uint64_t found = bytes.size() - header.header_bytes;
  require(found == header.data_bytes, ErrorCode::invalid_file,
          "{}: {} IDX file: shape {} of {}-byte elements takes {} bytes after the header, found {}", name,
          found < header.data_bytes ? "truncated" : "overlong", to_string(header.shape), header.element.bytes,
          header.data_bytes, found);
  Tensor result(header.element.type, header.shape);
  convert_elements(header.element.code, bytes.data() + header.header_bytes, result);
  return result;
}

Tensor read_idx(const std::filesystem::path& path, uint64_t maximum_bytes) {
  return parse_idx(read_file(path, maximum_bytes), path.string(), maximum_bytes);
}

std::vector<std::byte> to_idx(const Tensor& tensor) {
  const auto* element =
      std::find_if(std::begin(kElementCodes), std::end(kElementCodes),
                   [&](const ElementCode& candidate) { return candidate.type == tensor.data_type(); });
  require(element != std::end(kElementCodes), ErrorCode::invalid_argument, "IDX has no element type for {}",
          to_string(tensor.data_type()));
  require(!tensor.shape().empty() && tensor.shape().size() <= 255, ErrorCode::invalid_argument,
          "IDX takes 1 to 255 axes, the tensor has shape {}", to_string(tensor.shape()));
  std::vector<std::byte> bytes;
  bytes.reserve(4 + 4 * tensor.shape().size() + tensor.bytes());
  append_big_endian<uint32_t>(bytes,
                              (uint32_t{element->code} << 8) | static_cast<uint32_t>(tensor.shape().size()));
  for (int64_t extent : tensor.shape()) {
    require(extent <= std::numeric_limits<uint32_t>::max(), ErrorCode::invalid_argument,
            "IDX extents are 32-bit, the tensor has shape {}", to_string(tensor.shape()));
    append_big_endian(bytes, static_cast<uint32_t>(extent));
  }
  const auto* source = static_cast<const std::byte*>(tensor.raw());
  for (size_t offset = 0; offset < tensor.bytes(); offset += element->bytes) {  // little-endian host
    for (size_t i = element->bytes; i-- > 0;) bytes.push_back(source[offset + i]);
  }
  return bytes;
}

}  // namespace tessera::data
