// TFRecord files, and the messages tf.train.Example in them, without TensorFlow.
// Source: tensorflow/core/lib/io/record_writer.h (framing, masked CRC-32C), tensorflow/core/example/*.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::data {

// The Castagnoli polynomial, as iSCSI (RFC 3720) and TensorFlow have it.
uint32_t crc32c(std::span<const std::byte> bytes);

struct RecordPlace {
  uint64_t offset = 0;  // of the contents, in the file
  uint64_t bytes = 0;
};

// A checksum as TFRecord stores it, so that one of data that holds its own is no special number.
constexpr uint32_t masked_checksum(uint32_t sum) {
  return (sum >> 15U | sum << 17U) + 0xa282ead8U;
}

// The records of a file, in its order. `name` stands in the messages. Throws Error(invalid_file) naming the
// byte where a record begins that is truncated, or whose length or contents have another checksum; and for a
// file that is compressed.
std::vector<RecordPlace> parse_tfrecord(std::span<const std::byte> bytes, const std::string& name);

// The values of one feature: of one of the three kinds. Bytes lie in the message that was parsed.
struct Feature {
  std::vector<std::span<const std::byte>> bytes;
  std::vector<float> reals;
  std::vector<int64_t> integers;
};
using Features = std::map<std::string_view, Feature>;

// What an example holds, by name; what the messages may hold beside that is skipped. Throws
// Error(invalid_file) with `name` where the message is cut off or not of this form.
Features parse_example(std::span<const std::byte> message, const std::string& name);

}  // namespace tessera::data
