#include "tessera/data/idx.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Idx, EveryTypeRoundTrips) {
  const Tensor tensors[] = {
      Tensor::from<uint8_t>({2, 3}, {0, 1, 2, 127, 128, 255}),
      Tensor::from<int8_t>({3}, {-128, 0, 127}),
      Tensor::from<int32_t>({2, 1, 2}, {std::numeric_limits<int32_t>::min(), -1, 1, 0x01020304}),
      Tensor::from<float>({2}, {-1.5f, std::numeric_limits<float>::infinity()}),
      Tensor::from<double>({1, 1}, {3.141592653589793}),
      Tensor(DataType::uint8, {4, 0, 7}),
  };
  for (const Tensor& tensor : tensors) {
    const Bytes bytes = to_idx(tensor);
    EXPECT_TRUE(parse_idx(bytes, "file").identical(tensor)) << to_string(tensor.data_type());
    EXPECT_TRUE(parse_idx(gzip(bytes), "file").identical(tensor));
  }
}

TEST(Idx, BytesAreAsTheFormatSays) {
  const Tensor image = parse_idx(bytes_of({0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 9}), "file");
  EXPECT_TRUE(image.identical(Tensor::from<uint8_t>({1, 2}, {7, 9})));
  const Tensor shorts = parse_idx(bytes_of({0, 0, 0x0B, 1, 0, 0, 0, 2, 1, 2, 0xff, 0xfe}), "file");
  EXPECT_TRUE(shorts.identical(Tensor::from<int16_t>({2}, {0x0102, -2})));
  const Tensor real = parse_idx(bytes_of({0, 0, 0x0D, 1, 0, 0, 0, 1, 0x3f, 0x80, 0, 0}), "file");
  EXPECT_TRUE(real.identical(Tensor::from<float>({1}, {1.0f})));
}

TEST(Idx, FaultsSayWhatWasExpectedAndFound) {
  const auto code = ErrorCode::invalid_file;
  EXPECT_ERROR(parse_idx({}, "a.idx"), code, "a.idx", "truncated", "0 bytes");
  EXPECT_ERROR(parse_idx(bytes_of({1, 0, 8, 1, 0, 0, 0, 0}), "a.idx"), code, "a.idx", "0x01000801");
  EXPECT_ERROR(parse_idx(bytes_of({0, 0, 0x0A, 1, 0, 0, 0, 0}), "a.idx"), code, "a.idx", "0x0a", "0x08");
  EXPECT_ERROR(parse_idx(bytes_of({0, 0, 8, 0}), "a.idx"), code, "a.idx", "rank is 0");
  EXPECT_ERROR(parse_idx(bytes_of({0, 0, 8, 2, 0, 0, 0, 1}), "a.idx"), code, "truncated", "2 axes takes 12");
  EXPECT_ERROR(parse_idx(bytes_of({0, 0, 8, 1, 0, 0, 0, 3, 1, 2}), "a.idx"), code, "truncated", "[3]",
               "takes 3 bytes", "found 2");
  EXPECT_ERROR(parse_idx(bytes_of({0, 0, 8, 1, 0, 0, 0, 1, 1, 2}), "a.idx"), code, "overlong", "found 2");
}

TEST(Idx, HugeShapesAreRefusedBeforeAnythingIsAllocated) {
  Bytes bytes = bytes_of({0, 0, 0x0E, 4});
  bytes.resize(20, std::byte{0xff});  // 2^32-1 in each of four axes
  EXPECT_ERROR(parse_idx(bytes, "huge"), ErrorCode::invalid_file, "huge", "4294967295", "more than");
  for (size_t i = 4; i < 8; ++i) bytes[i] = std::byte{0};  // and with an empty axis
  EXPECT_ERROR(parse_idx(bytes, "huge"), ErrorCode::invalid_file, "huge", "more than");
  EXPECT_ERROR(parse_idx(to_idx(Tensor(DataType::uint8, {100})), "big", 99), ErrorCode::invalid_file, "99 B");
}

TEST(Idx, ABombIsRefusedByTheLengthItsHeaderGives) {
  Bytes bytes = to_idx(Tensor(DataType::uint8, {10}));
  bytes.resize(5'000'000);
  EXPECT_ERROR(parse_idx(gzip(bytes), "bomb.gz"), ErrorCode::invalid_file, "bomb.gz", "18 bytes expected");
}

TEST(Idx, FilesPlainAndGzip) {
  const testing::TemporaryFolder folder;
  const Tensor tensor = Tensor::from<uint8_t>({2, 2}, {1, 2, 3, 4});
  write_file(folder / "plain", to_idx(tensor));
  write_file(folder / "packed.gz", gzip(to_idx(tensor)));
  EXPECT_TRUE(read_idx(folder / "plain").identical(tensor));
  EXPECT_TRUE(read_idx(folder / "packed.gz").identical(tensor));
  EXPECT_ERROR(read_idx(folder / "absent"), ErrorCode::io, "absent");

  Bytes packed = gzip(to_idx(tensor));
  packed.resize(packed.size() - 5);
  write_file(folder / "short.gz", packed);
  EXPECT_ERROR(read_idx(folder / "short.gz"), ErrorCode::invalid_file, "short.gz", "truncated");
}

TEST(Idx, WritingRefusesWhatTheFormatCannotHold) {
  EXPECT_ERROR(to_idx(Tensor(DataType::fp16, {2})), ErrorCode::invalid_argument, "fp16");
  EXPECT_ERROR(to_idx(Tensor::scalar(DataType::fp32, 1)), ErrorCode::invalid_argument, "[]");
}

}  // namespace
}  // namespace tessera::data
