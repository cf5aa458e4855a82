// tf.train.Example in protobuf's wire format. Four messages of one or two fields: less than a room that every
// build has should link a library for, and read without a copy of the image.
#include <bit>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/data/tfrecord.h"

#include "data/little_endian.h"

namespace tessera::data {
namespace {

using Bytes = std::span<const std::byte>;

enum class WireType : uint8_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

// One field of a message after the other.
class WireReader {
 public:
  WireReader(Bytes message, const std::string& name) : message_(message), name_(name) {}

  // False at the end.
  bool next() {
    if (message_.empty()) return false;
    const uint64_t key = varint();
    number_ = key >> 3U;
    type_ = static_cast<WireType>(key & 7U);
    switch (type_) {
      case WireType::varint:
        value_ = varint();
        break;
      case WireType::fixed64:
        contents_ = take(8);
        break;
      case WireType::delimited:
        contents_ = take(varint());
        break;
      case WireType::fixed32:
        contents_ = take(4);
        break;
      default:
        refuse("holds a field of an unknown type");
    }
    return true;
  }

  uint64_t number() const { return number_; }
  WireType type() const { return type_; }
  uint64_t value() const { return value_; }     // of a varint
  Bytes contents() const { return contents_; }  // of the others
  bool empty() const { return message_.empty(); }

  uint64_t varint() {
    constexpr int kMostBytes = 10;
    uint64_t value = 0;
    for (int i = 0; i < kMostBytes; ++i) {
      const auto byte = std::to_integer<uint64_t>(take(1).front());
      value |= (byte & 0x7fU) << 7U * static_cast<unsigned>(i);
      if ((byte & 0x80U) == 0) return value;
    }
    refuse("holds a number that does not end");
  }

  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorCode::invalid_file, "{}: the example {}", name_, what);
  }

 private:
  Bytes take(uint64_t count) {
    if (count > message_.size()) refuse("is cut off");
    const Bytes taken = message_.first(count);
    message_ = message_.subspan(count);
    return taken;
  }

  Bytes message_;
  const std::string& name_;
  uint64_t number_ = 0;
  WireType type_ = WireType::varint;
  uint64_t value_ = 0;
  Bytes contents_;
};

// The message in a field of that number; of several the last, as protobuf has it.
std::optional<Bytes> message_in(WireReader reader, uint64_t number) {
  std::optional<Bytes> found;
  while (reader.next()) {
    if (reader.number() == number && reader.type() == WireType::delimited) found = reader.contents();
  }
  return found;
}

float real_of(Bytes bytes) {
  return std::bit_cast<float>(static_cast<uint32_t>(little_endian(bytes)));
}

void read_reals(WireReader reader, std::vector<float>& reals) {
  while (reader.next()) {
    if (reader.number() != 1) continue;
    const Bytes contents = reader.contents();
    if (reader.type() == WireType::fixed32) {
      reals.push_back(real_of(contents));
    } else if (reader.type() == WireType::delimited) {
      if (contents.size() % sizeof(float) != 0) reader.refuse("has reals that are no four bytes each");
      for (size_t at = 0; at < contents.size(); at += sizeof(float))
        reals.push_back(real_of(contents.subspan(at, sizeof(float))));
    }
  }
}

void read_integers(WireReader reader, const std::string& name, std::vector<int64_t>& integers) {
  while (reader.next()) {
    if (reader.number() != 1) continue;
    if (reader.type() == WireType::varint) {
      integers.push_back(static_cast<int64_t>(reader.value()));
    } else if (reader.type() == WireType::delimited) {
      for (WireReader packed(reader.contents(), name); !packed.empty();)
        integers.push_back(static_cast<int64_t>(packed.varint()));
    }
  }
}

Feature read_feature(Bytes message, const std::string& name) {
  Feature feature;
  for (WireReader reader(message, name); reader.next();) {
    if (reader.type() != WireType::delimited) continue;
    const WireReader list(reader.contents(), name);
    if (reader.number() == 1) {
      for (WireReader values = list; values.next();) {
        if (values.number() == 1 && values.type() == WireType::delimited)
          feature.bytes.push_back(values.contents());
      }
    } else if (reader.number() == 2) {
      read_reals(list, feature.reals);
    } else if (reader.number() == 3) {
      read_integers(list, name, feature.integers);
    }
  }
  return feature;
}

}  // namespace

Features parse_example(Bytes message, const std::string& name) {
  Features features;
  const std::optional<Bytes> all = message_in({message, name}, 1);
  if (!all.has_value()) return features;
  for (WireReader entries(*all, name); entries.next();) {
    if (entries.number() != 1 || entries.type() != WireType::delimited) continue;
    const Bytes key = message_in({entries.contents(), name}, 1).value_or(Bytes{});
    const Bytes value = message_in({entries.contents(), name}, 2).value_or(Bytes{});
    features[{reinterpret_cast<const char*>(key.data()), key.size()}] = read_feature(value, name);
  }
  return features;
}

}  // namespace tessera::data
