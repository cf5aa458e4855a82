#include "safetensors_header.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestRank = 64;
constexpr std::pair<std::string_view, DataType> kTypeNames[] = {
    {"F64", DataType::fp64},
    {"C64", DataType::complex64},
    {"I64", DataType::int64},
    {"U64", DataType::uint64},
    {"F32", DataType::fp32},
    {"I32", DataType::int32},
    {"U32", DataType::uint32},
    {"F16", DataType::fp16},
    {"BF16", DataType::bf16},
    {"I16", DataType::int16},
    {"U16", DataType::uint16},
    {"F8_E4M3", DataType::fp8_e4m3fn},
    {"F8_E4M3FNUZ", DataType::fp8_e4m3fnuz},
    {"F8_E5M2", DataType::fp8_e5m2},
    {"F8_E5M2FNUZ", DataType::fp8_e5m2fnuz},
    {"F8_E8M0", DataType::fp8_e8m0},
    {"I8", DataType::int8},
    {"U8", DataType::uint8},
    {"BOOL", DataType::boolean},
    {"F4", DataType::fp4_e2m1},
};

std::string_view type_name(DataType type) {
  for (const auto& [text, candidate] : kTypeNames) {
    if (candidate == type) return text;
  }
  fail(ErrorCode::invalid_argument, "a safetensors file cannot hold {}", to_string(type));
}

// Long or odd text from a file, made fit for a message.
std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string result = "'";
  for (char character : text.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(character);
    result += code < 0x20 || code == 0x7f ? '?' : character;
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

class HeaderParser {
 public:
  HeaderParser(uint64_t data_bytes, const std::string& name) : data_bytes_(data_bytes), name_(name) {}

  SafetensorsHeader parse(std::string_view text) {
    const Json json = parse_json(text);
    require(json.is_object(), ErrorCode::invalid_file, "{}: the header is not a JSON object", name_);
    SafetensorsHeader header;
    for (const auto& [key, value] : json.items()) {
      if (key == kMetadataKey) {
        header.metadata = parse_metadata(value);
      } else {
        header.entries.emplace(key, parse_entry(key, value));
      }
    }
    check_coverage(header);
    return header;
  }

 private:
  // The library keeps the last of several equal keys, so they are counted while it parses.
  Json parse_json(std::string_view text) const {
    std::vector<std::set<std::string>> keys;
    const auto on_event = [&](int depth, Json::parse_event_t event, Json& value) {
      constexpr int kDeepest = 3;  // {name: {shape: [...]}}
      if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
        require(depth < kDeepest, ErrorCode::invalid_file, "{}: the header is nested too deeply", name_);
        keys.resize(static_cast<size_t>(depth) + 1);
        keys.back().clear();
      } else if (event == Json::parse_event_t::key) {
        const auto& key = value.get_ref<const std::string&>();
        keys.resize(static_cast<size_t>(depth));
        require(keys.back().insert(key).second, ErrorCode::invalid_file,
                "{}: the header gives the name {} twice", name_, in_quotes(key));
      }
      return true;
    };
    try {
      return Json::parse(text.begin(), text.end(), on_event);
    } catch (const Json::exception& error) {
      fail(ErrorCode::invalid_file, "{}: the header is not valid JSON: {}", name_, error.what());
    }
  }

  std::map<std::string, std::string> parse_metadata(const Json& json) const {
    require(json.is_object(), ErrorCode::invalid_file, "{}: {} is not a JSON object", name_, kMetadataKey);
    std::map<std::string, std::string> metadata;
    for (const auto& [key, value] : json.items()) {
      require(value.is_string(), ErrorCode::invalid_file, "{}: {} entry {} is not a text", name_,
              kMetadataKey, in_quotes(key));
      metadata.emplace(key, value.get<std::string>());
    }
    return metadata;
  }

  SafetensorsEntry parse_entry(const std::string& key, const Json& json) const {
    require(json.is_object(), ErrorCode::invalid_file, "{}: tensor {}: its entry is not a JSON object", name_,
            in_quotes(key));
    for (const auto& [field, value] : json.items()) {
      require(field == "dtype" || field == "shape" || field == "data_offsets", ErrorCode::invalid_file,
              "{}: tensor {}: unknown field {}", name_, in_quotes(key), in_quotes(field));
    }
    SafetensorsEntry entry;
    entry.type = parse_type(key, json);
    auto bits = static_cast<uint64_t>(bits_of(entry.type));
    for (uint64_t extent : parse_numbers(key, json, "shape")) {
      // An empty axis counts as one, so that the product of the others cannot overflow unseen.
      require(!__builtin_mul_overflow(bits, std::max<uint64_t>(extent, 1), &bits) &&
                  bits <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
              ErrorCode::invalid_file, "{}: tensor {}: its shape overflows 64 bits", name_, in_quotes(key));
      entry.shape.push_back(static_cast<int64_t>(extent));
    }
    if (element_count(entry.shape) == 0) bits = 0;
    require(bits % 8 == 0, ErrorCode::invalid_file, "{}: tensor {}: {} of shape {} ends within a byte", name_,
            in_quotes(key), to_string(entry.type), to_string(entry.shape));
    const uint64_t bytes = bits / 8;

    const std::vector<uint64_t> offsets = parse_numbers(key, json, "data_offsets");
    require(offsets.size() == 2, ErrorCode::invalid_file,
            "{}: tensor {}: data_offsets has {} numbers, expected 2", name_, in_quotes(key), offsets.size());
    entry.begin = offsets[0];
    entry.end = offsets[1];
    check_offsets(key, entry, bytes);
    return entry;
  }

  void check_offsets(const std::string& key, const SafetensorsEntry& entry, uint64_t bytes) const {
    require(entry.begin <= entry.end && entry.end <= data_bytes_, ErrorCode::invalid_file,
            "{}: tensor {}: bytes {} to {} lie outside the {} bytes of data (is the file truncated?)", name_,
            in_quotes(key), entry.begin, entry.end, data_bytes_);
    require(entry.end - entry.begin == bytes, ErrorCode::invalid_file,
            "{}: tensor {}: {} of shape {} takes {} bytes, its offsets span {}", name_, in_quotes(key),
            to_string(entry.type), to_string(entry.shape), bytes, entry.end - entry.begin);
    require(entry.begin % static_cast<uint64_t>(bytes_of(entry.type, 1)) == 0, ErrorCode::invalid_file,
            "{}: tensor {}: offset {} is not aligned for {}", name_, in_quotes(key), entry.begin,
            to_string(entry.type));
  }

  DataType parse_type(const std::string& key, const Json& json) const {
    const auto field = json.find("dtype");
    require(field != json.end() && field->is_string(), ErrorCode::invalid_file,
            "{}: tensor {}: dtype is missing or not a text", name_, in_quotes(key));
    const auto& text = field->get_ref<const std::string&>();
    std::vector<std::string_view> known;
    for (const auto& [candidate, type] : kTypeNames) {
      if (candidate == text) return type;
      known.push_back(candidate);
    }
    fail(ErrorCode::invalid_file, "{}: tensor {}: dtype {} is unknown, expected one of {}", name_,
         in_quotes(key), in_quotes(text), fmt::join(known, ", "));
  }

  std::vector<uint64_t> parse_numbers(const std::string& key, const Json& json,
                                      const char* field_name) const {
    const auto field = json.find(field_name);
    require(field != json.end() && field->is_array() && field->size() <= kLargestRank,
            ErrorCode::invalid_file, "{}: tensor {}: {} is missing or not an array of at most {} numbers",
            name_, in_quotes(key), field_name, kLargestRank);
    std::vector<uint64_t> numbers;
    for (const Json& value : *field) {
      require(value.is_number_unsigned(), ErrorCode::invalid_file,
              "{}: tensor {}: {} holds something else than a natural number", name_, in_quotes(key),
              field_name);
      numbers.push_back(value.get<uint64_t>());
    }
    return numbers;
  }

  // Every byte of the data belongs to exactly one tensor.
  void check_coverage(const SafetensorsHeader& header) const {
    using Item = std::pair<const std::string, SafetensorsEntry>;
    std::vector<const Item*> order;
    for (const Item& item : header.entries) order.push_back(&item);
    std::stable_sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
      return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    uint64_t covered = 0;
    for (const Item* item : order) {
      require(item->second.begin == covered, ErrorCode::invalid_file,
              "{}: tensor {}: begins at byte {} of the data, which {} byte {}", name_, in_quotes(item->first),
              item->second.begin,
              item->second.begin < covered ? "overlaps the tensor that ends at" : "leaves a hole after",
              covered);
      covered = item->second.end;
    }
    require(covered == data_bytes_, ErrorCode::invalid_file,
            "{}: the tensors take {} bytes of data, the file holds {}", name_, covered, data_bytes_);
  }

  uint64_t data_bytes_;
  const std::string& name_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& name) {
  return HeaderParser(data_bytes, name).parse(text);
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string text;
  try {
    Json json = Json::object();
    if (!header.metadata.empty()) json[std::string(kMetadataKey)] = header.metadata;
    for (const auto& [name, entry] : header.entries) {
      json[name] = {{"dtype", type_name(entry.type)},
                    {"shape", entry.shape},
                    {"data_offsets", {entry.begin, entry.end}}};
    }
    text = json.dump();
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_argument, "a tensor's name or the metadata are not UTF-8: {}", error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace tessera::data
