#include "tessera/data/npy.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "data/little_endian.h"

namespace tessera::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostHeader = 1 << 16;
constexpr size_t kMostAxes = 64;
constexpr size_t kAlignment = 64;  // of the data that write_npy() writes

struct TypeName {
  std::string_view name;
  DataType type;
};

constexpr std::array kTypes{TypeName{"f4", DataType::fp32},      TypeName{"f8", DataType::fp64},
                            TypeName{"f2", DataType::fp16},      TypeName{"i1", DataType::int8},
                            TypeName{"u1", DataType::uint8},     TypeName{"i2", DataType::int16},
                            TypeName{"u2", DataType::uint16},    TypeName{"i4", DataType::int32},
                            TypeName{"u4", DataType::uint32},    TypeName{"i8", DataType::int64},
                            TypeName{"u8", DataType::uint64},    TypeName{"b1", DataType::boolean},
                            TypeName{"c8", DataType::complex64}, TypeName{"c16", DataType::complex128}};

struct Header {
  DataType type = DataType::fp32;
  bool column_major = false;
  Shape shape;
};

// Reads the header's text: a dictionary of Python with three entries.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header read() {
    Header header;
    int entries = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.type = type_of(quoted());
      } else if (key == "fortran_order") {
        header.column_major = word() == "True";
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        fail_here("an entry '" + key + "'");
      }
      ++entries;
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (entries != 3) fail_here("other entries than descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail_here(const std::string& what) const {
    fail(ErrorCode::invalid_file, "{}: its header has {} near byte {}", file_, what, place_);
  }
  void skip_spaces() {
    while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\n')) ++place_;
  }
  bool take(char c) {
    skip_spaces();
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail_here(std::string("no '") + c + "'");
  }
  std::string quoted() {
    skip_spaces();
    const char quote = place_ < text_.size() ? text_[place_] : ' ';
    if (quote != '\'' && quote != '"') fail_here("no text");
    const size_t end = text_.find(quote, ++place_);
    if (end == std::string_view::npos) fail_here("a text without an end");
    std::string result(text_.substr(place_, end - place_));
    place_ = end + 1;
    return result;
  }
  std::string word() {
    skip_spaces();
    std::string result;
    while (place_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[place_])) != 0)
      result += text_[place_++];
    if (result != "True" && result != "False") fail_here("neither True nor False");
    return result;
  }
  Shape shape() {
    Shape result;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      int64_t extent = -1;
      const auto [end, error] = std::from_chars(text_.data() + place_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || result.size() == kMostAxes) fail_here("no extent");
      place_ = static_cast<size_t>(end - text_.data());
      take('L');
      result.push_back(extent);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }
  DataType type_of(const std::string& descriptor) const {
    const bool known_order =
        !descriptor.empty() && (descriptor[0] == '<' || descriptor[0] == '|' || descriptor[0] == '=');
    for (const TypeName& entry : kTypes) {
      if (known_order && std::string_view(descriptor).substr(1) == entry.name) return entry.type;
    }
    fail(ErrorCode::invalid_file,
         "{}: elements of type '{}' are not supported: little-endian numbers and booleans are", file_,
         descriptor);
  }

  std::string_view text_;
  const std::string& file_;
  size_t place_ = 0;
};

// The elements of a tensor whose first axis is the innermost, in row-major order.
Tensor row_major(const Tensor& columns, const Shape& shape) {
  Tensor result(columns.data_type(), shape);
  const size_t width = size_of(result.data_type());
  const std::vector<int64_t> strides = row_major_strides(shape);
  std::vector<int64_t> column_strides(shape.size(), 1);
  for (size_t axis = 1; axis < shape.size(); ++axis)
    column_strides[axis] = column_strides[axis - 1] * shape[axis - 1];
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t from = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      from += i / strides[axis] % shape[axis] * column_strides[axis];
    std::memcpy(static_cast<std::byte*>(result.raw()) + static_cast<size_t>(i) * width,
                static_cast<const std::byte*>(columns.raw()) + static_cast<size_t>(from) * width, width);
  }
  return result;
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  constexpr size_t kPreamble = 8;
  require(bytes.size() >= kPreamble + 2 && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0,
          ErrorCode::invalid_file, "{}: no .npy file", name);
  const auto version = std::to_integer<int>(bytes[6]);
  require(version >= 1 && version <= 3, ErrorCode::invalid_file, "{}: version {} of the format is not known",
          name, version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  require(bytes.size() >= kPreamble + length_bytes, ErrorCode::invalid_file, "{}: truncated .npy file", name);
  const size_t length = little_endian(bytes.subspan(kPreamble, length_bytes));
  const size_t begin = kPreamble + length_bytes;
  require(length <= kMostHeader && length <= bytes.size() - begin, ErrorCode::invalid_file,
          "{}: truncated .npy file: a header of {} bytes, {} follow", name, length, bytes.size() - begin);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  const Header header = HeaderReader(text, name).read();
  const std::span<const std::byte> data = bytes.subspan(begin + length);
  // An empty axis counts as one in the bound of a tensor's bytes, and as nothing in the file's.
  const int64_t bound = tensor_bytes(header.type, header.shape);
  const int64_t wanted = element_count(header.shape) == 0 ? 0 : bound;
  require(wanted == std::ssize(data), ErrorCode::invalid_file, "{}: {}{} takes {} bytes, the file has {}",
          name, to_string(header.type), to_string(header.shape), wanted, data.size());
  Tensor tensor(header.type, header.shape);
  if (!data.empty()) std::memcpy(tensor.raw(), data.data(), data.size());
  if (header.type == DataType::boolean) {
    for (const std::byte value : data)
      require(value <= std::byte{1}, ErrorCode::invalid_file, "{}: a boolean is neither 0 nor 1", name);
  }
  return header.column_major && header.shape.size() > 1 ? row_major(tensor, header.shape) : tensor;
}

Tensor read_npy(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return parse_npy(bytes, path.string());
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string descriptor;
  for (const TypeName& entry : kTypes) {
    if (entry.type == tensor.data_type()) descriptor = entry.name;
  }
  require(!descriptor.empty(), ErrorCode::unsupported, "{}: NumPy has no type for {}: cast it before",
          path.string(), to_string(tensor.data_type()));
  const bool is_byte = size_of(tensor.data_type()) == 1;
  std::string shape;
  for (const int64_t extent : tensor.shape())
    shape += std::to_string(extent) + (tensor.shape().size() == 1 ? "," : ", ");
  if (tensor.shape().size() > 1) shape.erase(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   is_byte ? '|' : '<', descriptor, shape);
  const size_t begin = kMagic.size() + 4;
  header.append((kAlignment - (begin + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  AtomicFile file(path);
  file.write(kMagic);
  const char preamble[] = {1, 0, static_cast<char>(header.size() & 0xff),
                           static_cast<char>(header.size() >> 8)};
  file.write({preamble, sizeof preamble});
  file.write(header);
  file.write({static_cast<const std::byte*>(tensor.raw()), tensor.bytes()});
  file.commit();
}

}  // namespace tessera::data
