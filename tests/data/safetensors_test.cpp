#include "tessera/data/safetensors.h"

#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/random_tensor.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

using Bytes = std::vector<std::byte>;

// A file with this header and so many bytes of data, all zero.
Bytes file_with(const std::string& header, size_t data_bytes) {
  Bytes bytes;
  for (size_t i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  for (char character : header) bytes.push_back(static_cast<std::byte>(character));
  bytes.resize(bytes.size() + data_bytes);
  return bytes;
}

std::map<std::string, Tensor> one_of_each_type() {
  std::map<std::string, Tensor> tensors;
  for (DataType type : kAllDataTypes) {
    if (type == DataType::complex128 || (is_packed(type) && is_integer(type))) continue;  // not of the format
    const std::vector<double> values = {0, 1, 1, 0, 1, 1};
    tensors["weight." + std::string(to_string(type))] = Tensor::from_doubles(type, {2, 3}, values);
  }
  tensors["scalar"] = Tensor::scalar(DataType::fp32, 7);
  tensors["empty"] = Tensor(DataType::fp32, {0, 4});
  return tensors;
}

TEST(Safetensors, RoundTrip) {
  const testing::TemporaryFolder folder;
  const auto tensors = one_of_each_type();
  const std::map<std::string, std::string> metadata = {{"epoch", "3"}, {"note", "grüße \"quoted\"\n"}};
  write_safetensors(folder / "a.safetensors", tensors, metadata);
  const SafetensorsFile file = SafetensorsFile::open(folder / "a.safetensors");
  EXPECT_EQ(file.metadata(), metadata);
  const auto read = file.read_all();
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(read.at(name).identical(tensor)) << name;

  const Bytes bytes = read_file(folder / "a.safetensors");
  EXPECT_TRUE(SafetensorsFile::parse(bytes, "memory").read("scalar").identical(tensors.at("scalar")));
  write_safetensors(folder / "b.safetensors", read, metadata);
  EXPECT_EQ(read_file(folder / "b.safetensors"), bytes);
}

TEST(Safetensors, EveryTensorIsAlignedInTheFile) {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "a.safetensors", one_of_each_type());
  const Bytes bytes = read_file(folder / "a.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  EXPECT_EQ(header_bytes % 8, 0u);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "a");
  for (const auto& [name, entry] : file.entries())
    EXPECT_EQ(entry.begin % static_cast<uint64_t>(bytes_of(entry.type, 1)), 0u) << name;
}

TEST(Safetensors, ReadsWhatPythonWrote) {
  const auto file = SafetensorsFile::open(TESSERA_TEST_FOLDER "/golden/python.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("note"), "grüße");
  ASSERT_EQ(file.entries().size(), 11u);
  const std::tuple<const char*, DataType, double> cases[] = {
      {"F32", DataType::fp32, 0.5},  {"F64", DataType::fp64, 1.0 / 3}, {"F16", DataType::fp16, 0.25},
      {"BF16", DataType::bf16, 2},   {"I8", DataType::int8, 40},       {"I32", DataType::int32, 1e5},
      {"I64", DataType::int64, 1e10}};
  for (const auto& [name, type, factor] : cases) {
    const Tensor tensor = file.read(std::string("layer.") + name);
    EXPECT_EQ(tensor.data_type(), type) << name;
    EXPECT_EQ(tensor.shape(), (Shape{2, 3})) << name;
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_DOUBLE_EQ(tensor.at(i), static_cast<double>(i - 3) * factor) << name;
  }
  EXPECT_TRUE(file.read("layer.U8").identical(Tensor::from<uint8_t>({2, 3}, {247, 248, 249, 250, 251, 252})));
  EXPECT_EQ(file.read("layer.BOOL").to_doubles(), (std::vector<double>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(file.read("empty").shape(), (Shape{0, 4}));
  EXPECT_EQ(file.read("scalar").at(0), 7);
}

TEST(Safetensors, ReadsTheOtherTypesThatPythonWrote) {
  const auto file = SafetensorsFile::open(TESSERA_TEST_FOLDER "/golden/narrow.safetensors");
  ASSERT_EQ(file.entries().size(), 11u);
  const std::vector<double> values{-3, -2, -1, 0, 1, 2};
  const std::tuple<const char*, DataType, double, double> cases[] = {
      {"I16", DataType::int16, 1e4, 0},
      {"U16", DataType::uint16, 1, 65000},
      {"U32", DataType::uint32, 1, 4e9},
      {"float8_e4m3fn", DataType::fp8_e4m3fn, 1, 0},
      {"float8_e4m3fnuz", DataType::fp8_e4m3fnuz, 1, 0},
      {"float8_e5m2", DataType::fp8_e5m2, 1, 0},
      {"float8_e5m2fnuz", DataType::fp8_e5m2fnuz, 1, 0},
      {"float4_e2m1fn_x2", DataType::fp4_e2m1, 1, 0}};
  for (const auto& [name, type, factor, offset] : cases) {
    const Tensor tensor = file.read(name);
    EXPECT_EQ(tensor.data_type(), type) << name;
    ASSERT_EQ(tensor.size(), 6) << name;
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(tensor.at(static_cast<int64_t>(i)), values[i] * factor + offset) << name;
  }
  EXPECT_EQ(file.read("U64").data<uint64_t>()[5], 10'000'000'005u);
  EXPECT_EQ(file.read("C64").parts().at(11), 4);
  EXPECT_EQ(file.read("float8_e8m0fnu").to_doubles(), (std::vector<double>{0.125, 0.25, 0.5, 1, 2, 4}));
}

TEST(Safetensors, WhatTheFormatLacksIsNotWritten) {
  const testing::TemporaryFolder folder;
  EXPECT_ERROR(write_safetensors(folder / "a.safetensors", {{"q", Tensor(DataType::int4, {2})}}),
               ErrorCode::invalid_argument, "int4");
  EXPECT_ERROR(write_safetensors(folder / "a.safetensors", {{"q", Tensor(DataType::fp4_e2m1, {3})}}),
               ErrorCode::invalid_argument, "'q'", "within a byte");
  const std::string header = R"({"q":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})";
  EXPECT_ERROR(SafetensorsFile::parse(file_with(header, 2), "a"), ErrorCode::invalid_file, "within a byte");
}

TEST(Safetensors, AnUnknownNameSuggestsTheNearest) {
  const auto file = SafetensorsFile::open(TESSERA_TEST_FOLDER "/golden/python.safetensors");
  EXPECT_TRUE(file.contains("scalar"));
  EXPECT_FALSE(file.contains("scaler"));
  EXPECT_ERROR(file.read("scaler"), ErrorCode::invalid_argument, "python.safetensors", "'scaler'",
               "did you mean 'scalar'");
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const Bytes bytes = read_file(TESSERA_TEST_FOLDER "/golden/python.safetensors");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_ERROR(SafetensorsFile::parse(std::span(bytes).first(size), "cut"), ErrorCode::invalid_file, "cut")
        << size;
  }
}

TEST(Safetensors, FaultyHeadersAreRefused) {
  struct Case {
    std::string header;
    size_t data_bytes;
    std::string fault;
  };
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const Case cases[] = {
      {"", 0, "not valid JSON"},
      {"[]", 0, "not a JSON object"},
      {"{" + a, 8, "not valid JSON"},
      {"{\"\xff\":1}", 0, "not valid JSON"},
      {"{" + a + "," + a + "}", 8, "'a' twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "'dtype' twice"},
      {"{" + a + "}", 7, "outside the 7 bytes"},
      {"{" + a + "}", 9, "take 8 bytes of data, the file holds 9"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "overlaps"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16, "hole"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
       5, "not aligned"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "outside"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "takes 12 bytes, its offsets span 8"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "natural number"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "natural number"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8, "overflows"},
      {R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0, "overflows"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}})", 8, "natural number"},
      {R"({"a":{"dtype":"F6_E2M3","shape":[1],"data_offsets":[0,8]}})", 8, "'F6_E2M3' is unknown"},
      {R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})", 8, "dtype is missing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8, "shape is missing"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8, "has 1 numbers"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":0}})", 8, "unknown field 'x'"},
      {R"({"a":[]})", 0, "not a JSON object"},
      {R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8, "nested"},
      {R"({"__metadata__":{"a":1}})", 0, "not a text"},
      {R"({"__metadata__":3})", 0, "not a JSON object"},
  };
  for (const Case& test : cases) {
    EXPECT_ERROR(SafetensorsFile::parse(file_with(test.header, test.data_bytes), "bad.safetensors"),
                 ErrorCode::invalid_file, "bad.safetensors", test.fault)
        << test.header;
  }
}

TEST(Safetensors, AForgedHeaderLengthIsRefused) {
  Bytes bytes = file_with("{}", 0);
  EXPECT_TRUE(SafetensorsFile::parse(bytes, "empty").entries().empty());
  bytes[7] = std::byte{0x7f};
  EXPECT_ERROR(SafetensorsFile::parse(bytes, "forged"), ErrorCode::invalid_file, "forged",
               "at most 100000000");
  bytes[7] = std::byte{0};
  bytes[1] = std::byte{1};
  EXPECT_ERROR(SafetensorsFile::parse(bytes, "forged"), ErrorCode::invalid_file, "header of 258 bytes");
}

TEST(Safetensors, ABooleanIsZeroOrOne) {
  Bytes bytes = file_with(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  bytes.back() = std::byte{7};
  const auto file = SafetensorsFile::parse(bytes, "flags");
  EXPECT_ERROR(file.read("a"), ErrorCode::invalid_file, "flags", "'a'", "element 1");
}

TEST(Safetensors, AFileCutWhileOpenIsAnError) {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "a", {{"w", Tensor(DataType::fp32, {5000})}});
  const auto file = SafetensorsFile::open(folder / "a");
  std::filesystem::resize_file(folder / "a", 9000);
  EXPECT_ERROR(file.read("w"), ErrorCode::io, "became shorter");
}

TEST(Safetensors, WritingRefusesWhatTheFormatCannotHold) {
  const testing::TemporaryFolder folder;
  const Tensor tensor = Tensor::scalar(DataType::fp32, 1);
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(write_safetensors(folder / "a", {{"w", Tensor()}}), code, "'w'", "no contents");
  EXPECT_ERROR(write_safetensors(folder / "a", {{"__metadata__", tensor}}), code, "__metadata__");
  EXPECT_ERROR(write_safetensors(folder / "a", {{"\xff", tensor}}), code, "UTF-8");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Makes the contents of tensors when they are asked for, and looks whether those before are still held.
class Maker {
 public:
  SafetensorsSource source(DataType type, Shape shape) {
    return {type, shape, [this, type, shape] {
              EXPECT_TRUE(previous_.expired());
              Tensor tensor = testing::random_tensor(type, shape, -9, 9, ++made_);
              previous_ = tensor.owner();
              return tensor;
            }};
  }
  uint64_t made() const { return made_; }

 private:
  std::weak_ptr<void> previous_;
  uint64_t made_ = 0;
};

TEST(Safetensors, StreamingHoldsOneTensorAtATime) {
  const testing::TemporaryFolder folder;
  Maker maker;
  const std::map<std::string, std::string> metadata{{"step", "7"}};
  stream_safetensors(folder / "streamed",
                     {{"bytes", maker.source(DataType::int8, {3})},
                      {"doubles", maker.source(DataType::fp64, {2, 2})},
                      {"more", maker.source(DataType::fp64, {5})}},
                     metadata);
  EXPECT_EQ(maker.made(), 3U);
  write_safetensors(folder / "at_once",
                    {{"bytes", testing::random_tensor(DataType::int8, {3}, -9, 9, 3)},
                     {"doubles", testing::random_tensor(DataType::fp64, {2, 2}, -9, 9, 1)},
                     {"more", testing::random_tensor(DataType::fp64, {5}, -9, 9, 2)}},
                    metadata);
  EXPECT_EQ(read_file(folder / "streamed"), read_file(folder / "at_once"));
}

TEST(Safetensors, StreamingThatFailsLeavesWhatThereWas) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "a";
  write_safetensors(file, {{"w", Tensor::full(DataType::fp32, {4}, 3)}});
  const auto before = read_file(file);
  const SafetensorsSource lost{
      DataType::fp32, {4}, []() -> Tensor { fail(ErrorCode::device_fault, "lost"); }};
  EXPECT_ERROR(stream_safetensors(file, {{"w", lost}}), ErrorCode::device_fault, "lost");
  const SafetensorsSource other{DataType::fp32, {4}, [] { return Tensor(DataType::fp32, {2, 2}); }};
  EXPECT_ERROR(stream_safetensors(file, {{"w", other}}), ErrorCode::invalid_argument, "'w'", "fp32[4]",
               "fp32[2, 2]");
  EXPECT_EQ(read_file(file), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Safetensors, AreFilledInParts) {
  const testing::TemporaryFolder folder;
  const Tensor halves = testing::random_tensor(DataType::fp16, {2, 3}, -9, 9, 1);
  const Tensor numbers = testing::random_tensor(DataType::fp32, {5}, -9, 9, 2);
  const auto no_contents = []() -> Tensor { fail(ErrorCode::internal, "nobody asks for contents"); };
  AtomicFile file(folder / "filled");
  begin_safetensors(
      file,
      {{"halves", {DataType::fp16, {2, 3}, no_contents}}, {"numbers", {DataType::fp32, {5}, no_contents}}},
      {{"step", "7"}});
  {
    SafetensorsFiller first(file.temporary());
    SafetensorsFiller second(file.temporary());
    const auto part_of = [](const Tensor& tensor, int64_t begin, int64_t count) {
      Tensor part(tensor.data_type(), {count});
      for (int64_t i = 0; i < count; ++i) part.set(i, tensor.at(begin + i));
      return part;
    };
    second.write("numbers", 3, part_of(numbers, 3, 2));
    first.write("numbers", 0, part_of(numbers, 0, 3));
    first.write("numbers", 5, part_of(numbers, 5, 0));
    second.write("halves", 0, halves);
    EXPECT_ERROR(first.write("numbers", 4, part_of(numbers, 3, 2)), ErrorCode::invalid_argument, "4 to 6",
                 "fp32[5]", "'numbers'");
    EXPECT_ERROR(first.write("halves", 0, part_of(numbers, 0, 1)), ErrorCode::invalid_argument, "fp32");
    EXPECT_ERROR(first.write("others", 0, halves), ErrorCode::invalid_argument, "'others'");
    first.sync();
    second.sync();
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "filled"));
  file.commit();
  write_safetensors(folder / "at_once", {{"halves", halves}, {"numbers", numbers}}, {{"step", "7"}});
  EXPECT_EQ(read_file(folder / "filled"), read_file(folder / "at_once"));
}

}  // namespace
}  // namespace tessera::data
