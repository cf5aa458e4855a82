#include "tessera/data/tfrecord.h"

#include <array>

#include "tessera/base/error.h"

#include "data/little_endian.h"

namespace tessera::data {
namespace {

constexpr size_t kStep = 8;  // bytes whose remainders are looked up together

using Table = std::array<uint32_t, 256>;

// tables[k][byte]: the remainder of a byte that k others follow.
constexpr std::array<Table, kStep> make_tables() {
  constexpr uint32_t kReflected = 0x82f63b78;
  std::array<Table, kStep> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1U ^ (remainder & 1U) * kReflected;
    tables[0][byte] = remainder;
  }
  for (size_t k = 1; k < kStep; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8U ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr std::array<Table, kStep> kTables = make_tables();

constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kSumBytes = sizeof(uint32_t);
constexpr uint64_t kHeaderBytes = kLengthBytes + kSumBytes;

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t sum = ~0U;
  size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) {
    const auto word = little_endian(bytes.subspan(at, kStep)) ^ sum;
    sum = 0;
    for (size_t k = 0; k < kStep; ++k) sum ^= kTables[kStep - 1 - k][word >> 8U * k & 0xffU];
  }
  for (; at < bytes.size(); ++at)
    sum = sum >> 8U ^ kTables[0][(sum ^ std::to_integer<uint32_t>(bytes[at])) & 0xffU];
  return ~sum;
}

std::vector<RecordPlace> parse_tfrecord(std::span<const std::byte> bytes, const std::string& name) {
  require(!is_gzip(bytes), ErrorCode::invalid_file,
          "{}: is compressed; records are read where they lie: decompress it first (gunzip)", name);
  std::vector<RecordPlace> places;
  for (uint64_t at = 0; at < bytes.size();) {
    const auto refuse = [&](const char* what) {
      fail(ErrorCode::invalid_file, "{}: the record at byte {} {}", name, at, what);
    };
    const uint64_t left = bytes.size() - at;
    if (left < kHeaderBytes) refuse("is truncated in its length");
    const std::span<const std::byte> length = bytes.subspan(at, kLengthBytes);
    if (little_endian(bytes.subspan(at + kLengthBytes, kSumBytes)) != masked_checksum(crc32c(length)))
      refuse("has a length with another checksum: this is no TFRecord file, or it is damaged");
    const uint64_t size = little_endian(length);
    if (size > left || left - size < kHeaderBytes + kSumBytes) refuse("is truncated");
    const RecordPlace place{.offset = at + kHeaderBytes, .bytes = size};
    const std::span<const std::byte> contents = bytes.subspan(place.offset, size);
    if (little_endian(bytes.subspan(place.offset + size, kSumBytes)) != masked_checksum(crc32c(contents)))
      refuse("holds what has another checksum: it is damaged");
    places.push_back(place);
    at = place.offset + size + kSumBytes;
  }
  return places;
}

}  // namespace tessera::data
