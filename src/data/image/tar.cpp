#include "tessera/data/tar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kLargestDescription = 1 << 20;  // of a member that describes the next one

// Where the fields of a header lie (POSIX.1-2017, "ustar Interchange Format").
struct FieldPlace {
  size_t offset;
  size_t bytes;
};
constexpr FieldPlace kName{0, 100};
constexpr FieldPlace kSize{124, 12};
constexpr FieldPlace kChecksum{148, 8};
constexpr FieldPlace kType{156, 1};
constexpr FieldPlace kMagic{257, 5};
constexpr FieldPlace kPrefix{345, 155};

class TarReader {
 public:
  TarReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::vector<TarMember> read() {
    std::vector<TarMember> members;
    while (position_ < bytes_.size() && next_header()) {
      const char type = field(kType)[0];
      const uint64_t size = long_size_.value_or(number(kSize));
      const uint64_t offset = position_ + kBlock;
      check(size <= bytes_.size() - offset, "a member reaches beyond the end of the file");
      const std::string_view contents(reinterpret_cast<const char*>(bytes_.data()) + offset, size);
      if (type == 'x' || type == 'L') {
        check(size <= kLargestDescription, "the description of a member is too long");
        describe(type, contents);
      } else {
        if (type == '0' || type == '\0') {
          members.push_back({.name = member_name(), .offset = offset, .bytes = size});
        } else {
          check(type == '5' || type == 'g', "a member is no regular file but a link, a device or unknown");
        }
        long_name_.reset();
        long_size_.reset();
      }
      const uint64_t after = offset + size;
      position_ = after + std::min(tar_padding(size), bytes_.size() - after);
    }
    return members;
  }

 private:
  void check(bool holds, const char* fault) const {
    require(holds, ErrorCode::invalid_file, "{}: the tar file is broken at byte {}: {}", name_, position_,
            fault);
  }

  // False at the end, a block of zeros.
  bool next_header() {
    check(bytes_.size() - position_ >= kBlock, "a header is truncated");
    const auto block = bytes_.subspan(position_, kBlock);
    if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; })) return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.bytes;
      sum += own ? uint64_t{' '} : std::to_integer<uint64_t>(block[i]);
    }
    check(number(kChecksum) == sum, "the checksum of a header is wrong");
    return true;
  }

  std::string_view field(const FieldPlace& place) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + position_ + place.offset, place.bytes};
  }
  std::string text(const FieldPlace& place) const {
    const std::string_view whole = field(place);
    return std::string(whole.substr(0, whole.find('\0')));
  }

  // In octal digits, or as GNU writes what these cannot hold: the first bit set, and the rest in binary.
  uint64_t number(const FieldPlace& place) const {
    const std::string_view whole = field(place);
    uint64_t value = 0;
    if ((static_cast<uint8_t>(whole[0]) & 0x80) != 0) {
      for (const char c : whole.substr(whole.size() - 8)) value = value << 8 | static_cast<uint8_t>(c);
      return value;
    }
    const size_t first = std::min(whole.find_first_not_of(' '), whole.size());
    const auto [end, error] = std::from_chars(whole.data() + first, whole.data() + whole.size(), value, 8);
    check(error == std::errc{} || end == whole.data() + first, "a number of a header is too large");
    return value;
  }

  void describe(char type, std::string_view contents) {
    if (type == 'L') {
      long_name_ = std::string(contents.substr(0, contents.find('\0')));
      return;
    }
    // Records "LENGTH KEY=VALUE\n", the length being that of the whole record.
    while (!contents.empty()) {
      size_t length = 0;
      const auto [end, error] = std::from_chars(contents.data(), contents.data() + contents.size(), length);
      const auto digits = static_cast<size_t>(end - contents.data());
      check(error == std::errc{} && length <= contents.size() && length >= digits + 2 && *end == ' ',
            "the description of a member is broken");
      const std::string_view record = contents.substr(digits + 1, length - digits - 2);
      if (record.starts_with("path=")) long_name_ = std::string(record.substr(5));
      if (record.starts_with("size=")) {
        uint64_t size = 0;
        const auto [last, fault] = std::from_chars(record.data() + 5, record.data() + record.size(), size);
        check(fault == std::errc{} && last == record.data() + record.size(),
              "the size of a member is broken");
        long_size_ = size;
      }
      contents.remove_prefix(length);
    }
  }

  std::string member_name() const {
    std::string name = text(kName);
    const bool has_prefix = field(kMagic) == "ustar" && field({262, 1})[0] == '\0';
    if (const std::string prefix = has_prefix ? text(kPrefix) : ""; !prefix.empty())
      name.insert(0, prefix + "/");
    name = long_name_.value_or(name);
    if (name.starts_with("./")) name.erase(0, 2);
    check(stays_below(name), "the name of a member leads out of the archive");
    return name;
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  uint64_t position_ = 0;
  std::optional<std::string> long_name_;  // of the next member
  std::optional<uint64_t> long_size_;
};

}  // namespace

std::vector<TarMember> parse_tar(std::span<const std::byte> bytes, const std::string& name) {
  return TarReader(bytes, name).read();
}

std::vector<std::byte> tar_header(const std::string& name, uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 33;  // what eleven octal digits hold
  require(!name.empty() && name.size() <= kName.bytes && bytes < kMost, ErrorCode::invalid_argument,
          "a tar member cannot be called '{}' and have {} bytes: a name has 1 to {} bytes, a member below {}",
          name, bytes, kName.bytes, kMost);
  std::string header(kBlock, '\0');
  const auto set = [&](size_t offset, const std::string& text) { header.replace(offset, text.size(), text); };
  set(kName.offset, name);
  set(100, "0000644");  // mode, owner, group
  set(108, "0000000");
  set(116, "0000000");
  set(kSize.offset, fmt::format("{:011o}", bytes));
  set(136, "00000000000");  // time
  set(kChecksum.offset, "        ");
  set(kType.offset, "0");
  set(kMagic.offset, std::string("ustar\00000", 8));
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  set(kChecksum.offset, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  const auto block = as_bytes(header);
  return {block.begin(), block.end()};
}

uint64_t tar_padding(uint64_t bytes) {
  return (kBlock - bytes % kBlock) % kBlock;
}

}  // namespace tessera::data
