#include "tessera/data/zip.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <zlib.h>

#include "tessera/base/error.h"
#include "tessera/data/gzip.h"

#include "data/little_endian.h"
#include "data/sample_files.h"

namespace tessera::data {
namespace {

// What begins with each signature, and its bytes before names and other parts of any length.
constexpr uint64_t kLocalHeader = 0x04034b50;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kEntry = 0x02014b50;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kEnd = 0x06054b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLongEnd = 0x06064b50;
constexpr uint64_t kLongEndBytes = 56;
constexpr uint64_t kLongEndPlace = 0x07064b50;
constexpr uint64_t kLongEndPlaceBytes = 20;

constexpr uint64_t kLongestComment = 0xffff;
constexpr uint64_t kInLongForm = 0xffffffff;  // a number that stands in the Zip64 part
constexpr uint64_t kLongForm = 1;             // the extra part that holds it
constexpr uint64_t kEncrypted = 1;            // a flag
constexpr uint64_t kStored = 0;
constexpr uint64_t kDeflated = 8;
constexpr uint64_t kMostExpansion = 1032;  // bytes that deflating can make of one

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::vector<ZipMember> read() {
    find_directory();
    std::vector<ZipMember> members;
    uint64_t place = directory_;
    for (uint64_t i = 0; i < entries_; ++i) {
      ZipMember member = entry(place);
      if (!member.name.ends_with('/')) members.push_back(std::move(member));
    }
    check(place == directory_end_, "its directory is not as long as it says");
    check_apart(members);
    return members;
  }

 private:
  void check(bool holds, std::string_view fault) const {
    require(holds, ErrorCode::invalid_file, "{}: is no zip archive that can be read: {}", name_, fault);
  }
  bool lies_inside(uint64_t place, uint64_t count) const {
    return count <= bytes_.size() && place <= bytes_.size() - count;
  }
  uint64_t number(uint64_t place, uint64_t count) const {
    check(lies_inside(place, count), "it is truncated");
    return little_endian(bytes_.subspan(place, count));
  }
  std::string text(uint64_t place, uint64_t count) const {
    check(lies_inside(place, count), "it is truncated");
    return {reinterpret_cast<const char*>(bytes_.data()) + place, count};
  }

  // The last record of the archive, after which only its comment stands.
  uint64_t find_end() const {
    check(bytes_.size() >= kEndBytes, "it is truncated");
    const uint64_t last = bytes_.size() - kEndBytes;
    const uint64_t first = last - std::min(last, kLongestComment);
    for (uint64_t place = last + 1; place-- > first;) {
      if (number(place, 4) == kEnd && number(place + 20, 2) == last - place) return place;
    }
    check(false, "it has no directory at its end");
    return 0;
  }

  void find_directory() {
    const uint64_t end = find_end();
    check(number(end + 4, 2) == 0 && number(end + 6, 2) == 0, "it is of several parts");
    entries_ = number(end + 10, 2);
    uint64_t size = number(end + 12, 4);
    directory_ = number(end + 16, 4);
    if (end >= kLongEndPlaceBytes && number(end - kLongEndPlaceBytes, 4) == kLongEndPlace) {
      const uint64_t place = number(end - kLongEndPlaceBytes + 8, 8);
      check(lies_inside(place, kLongEndBytes) && number(place, 4) == kLongEnd, "its Zip64 record is missing");
      entries_ = number(place + 32, 8);
      size = number(place + 40, 8);
      directory_ = number(place + 48, 8);
    }
    check(lies_inside(directory_, size), "its directory lies outside of it");
    check(entries_ <= size / kEntryBytes, "its directory is too short for its entries");
    directory_end_ = directory_ + size;
  }

  // The entry at `place`, which is moved to the next.
  ZipMember entry(uint64_t& place) {
    check(number(place, 4) == kEntry, "an entry of its directory is broken");
    const uint64_t name_bytes = number(place + 28, 2);
    const uint64_t extra_bytes = number(place + 30, 2);
    const uint64_t method = number(place + 10, 2);
    ZipMember member{.name = text(place + kEntryBytes, name_bytes),
                     .stored_bytes = number(place + 20, 4),
                     .bytes = number(place + 24, 4),
                     .deflated = method == kDeflated,
                     .checksum = static_cast<uint32_t>(number(place + 16, 4))};
    uint64_t header = number(place + 42, 4);
    read_long_form(place + kEntryBytes + name_bytes, extra_bytes,
                   {&member.bytes, &member.stored_bytes, &header});
    const auto fault_of = [&](std::string_view fault) { return fmt::format("'{}' {}", member.name, fault); };
    check(stays_below(member.name), fault_of("leads out of it"));
    check(names_.insert(member.name).second, fault_of("is in it twice"));
    check((number(place + 8, 2) & kEncrypted) == 0, fault_of("is encrypted"));
    check(method == kStored || method == kDeflated, fault_of("is compressed otherwise than by deflating"));
    check(lies_inside(header, kLocalBytes) && number(header, 4) == kLocalHeader,
          fault_of("is not where the directory says"));
    check(text(header + kLocalBytes, number(header + 26, 2)) == member.name,
          fault_of("has another name at its place"));
    member.offset = header + kLocalBytes + number(header + 26, 2) + number(header + 28, 2);
    check(lies_inside(member.offset, member.stored_bytes), fault_of("reaches beyond the end"));
    check(member.deflated ? member.bytes / kMostExpansion <= member.stored_bytes
                          : member.bytes == member.stored_bytes,
          fault_of("tells of more than its bytes can hold"));
    place += kEntryBytes + name_bytes + extra_bytes + number(place + 32, 2);
    check(place <= directory_end_, "an entry of its directory is broken");
    return member;
  }

  // Numbers that do not fit into 32 bits stand in the extra part, in this order.
  void read_long_form(uint64_t place, uint64_t count, std::initializer_list<uint64_t*> numbers) const {
    for (const uint64_t end = place + count; place + 4 <= end;) {
      const uint64_t part_end = place + 4 + number(place + 2, 2);
      check(part_end <= end, "an entry of its directory is broken");
      if (number(place, 2) == kLongForm) {
        uint64_t next = place + 4;
        for (uint64_t* value : numbers) {
          if (*value != kInLongForm) continue;
          check(next + 8 <= part_end, "an entry of its directory is broken");
          *value = number(next, 8);
          next += 8;
        }
        return;
      }
      place = part_end;
    }
  }

  // Members that lie on each other would tell of the same bytes many times.
  void check_apart(std::vector<ZipMember> members) const {
    std::ranges::sort(members, {}, &ZipMember::offset);
    for (size_t i = 1; i < members.size(); ++i) {
      check(members[i - 1].offset + members[i - 1].stored_bytes <= members[i].offset,
            fmt::format("'{}' lies on '{}'", members[i].name, members[i - 1].name));
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  uint64_t directory_ = 0;
  uint64_t directory_end_ = 0;
  uint64_t entries_ = 0;
  std::set<std::string> names_;
};

}  // namespace

std::vector<ZipMember> parse_zip(std::span<const std::byte> bytes, const std::string& name) {
  return ZipReader(bytes, name).read();
}

std::vector<std::byte> unzip(std::span<const std::byte> archive, const ZipMember& member,
                             const std::string& name) {
  const std::string full_name = name + ": " + member.name;
  const std::span<const std::byte> stored = archive.subspan(member.offset, member.stored_bytes);
  std::vector<std::byte> contents = member.deflated ? inflate_raw(stored, full_name, member.bytes)
                                                    : std::vector<std::byte>(stored.begin(), stored.end());
  const auto checksum = static_cast<uint32_t>(
      contents.empty()
          ? 0
          : ::crc32_z(0, reinterpret_cast<const unsigned char*>(contents.data()), contents.size()));
  require(checksum == member.checksum, ErrorCode::invalid_file,
          "{}: its checksum is not that of what was written", full_name);
  return contents;
}

}  // namespace tessera::data
