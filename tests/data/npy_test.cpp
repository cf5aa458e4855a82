#include "tessera/data/npy.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_failure.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

// As numpy.save() writes it, of version 1.0.
std::string file_of(const std::string& header, const std::string& data) {
  std::string text = header;
  text.append(117 - text.size(), ' ');
  text += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size());
  file += '\0';
  file += text;
  file += data;
  return file;
}

Tensor parse(const std::string& bytes) {
  return parse_npy(as_bytes(bytes), "x.npy");
}

void expect_refused(const std::string& bytes, const std::string& part) {
  expect_error(ErrorCode::invalid_file, part, [&] { parse(bytes); });
}

TEST(Npy, ReadsWhatNumPyWrites) {
  const std::string data("\x01\x00\x02\x00\x03\x00\xff\xff\x05\x00\x06\x00", 12);
  const Tensor rows = parse(file_of("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", data));
  EXPECT_EQ(rows.data_type(), DataType::int16);
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(rows.to_doubles(), (std::vector<double>{1, 2, 3, -1, 5, 6}));
  const Tensor columns = parse(file_of("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", data));
  EXPECT_EQ(columns.to_doubles(), (std::vector<double>{1, 3, 5, 2, -1, 6}));
}

TEST(Npy, ReadsScalarsVectorsAndNothing) {
  EXPECT_EQ(parse(file_of("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "\x07")).shape(),
            Shape{});
  EXPECT_EQ(parse(file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\x01")).shape(),
            Shape{1});
  EXPECT_EQ(parse(file_of("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }", "")).shape(),
            (Shape{0, 4}));
}

TEST(Npy, WritesWhatItReads) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.npy";
  for (const DataType type :
       {DataType::fp32, DataType::fp16, DataType::int64, DataType::uint8, DataType::boolean}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{4, 0}}) {
      Tensor tensor(type, shape);
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i % 2));
      write_npy(path, tensor);
      EXPECT_TRUE(read_npy(path).identical(tensor)) << to_string(type) << to_string(shape);
      EXPECT_EQ((read_file(path).size() - tensor.bytes()) % 64, 0u);
    }
  }
  expect_error(ErrorCode::unsupported, "no type for bf16",
               [&] { write_npy(path, Tensor(DataType::bf16, {2})); });
}

TEST(Npy, RefusesOtherFiles) {
  expect_refused("", "no .npy file");
  expect_refused(std::string("\x93NUMPY\x09\x00\x00\x00", 10), "version 9");
  expect_refused(std::string("\x93NUMPY\x01\x00\xff\x7f", 10), "a header of 32767 bytes, 0 follow");
  expect_refused(file_of("{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", "ab"),
                 "'>i2' are not supported");
  expect_refused(file_of("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "ab"),
                 "'|O' are not supported");
  expect_refused(file_of("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", "ab"),
                 "takes 4 bytes, the file has 2");
  expect_refused(file_of("{'descr': '<i2', 'fortran_order': False, 'shape': (-1,), }", "ab"), "no extent");
  expect_refused(file_of("{'descr': '<i2', 'fortran_order': Maybe, 'shape': (1,), }", "ab"),
                 "neither True nor False");
  expect_refused(file_of("{'descr': '<i2', 'shape': (1,), }", "ab"), "other entries");
  expect_refused(file_of("nothing", "ab"), "no '{'");
  expect_refused(file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\x07"),
                 "neither 0 nor 1");
  EXPECT_THROW(
      parse(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999, 0), }", "")),
      Error);
}

}  // namespace
}  // namespace tessera::data
