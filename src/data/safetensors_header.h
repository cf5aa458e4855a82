// The JSON header of a safetensors file, between its text and its entries.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tessera/data/safetensors.h"

namespace tessera::data {

// As in the format's own implementation.
inline constexpr uint64_t kMaximumSafetensorsHeader = 100'000'000;
inline constexpr std::string_view kMetadataKey = "__metadata__";

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Parses the JSON text and checks each entry by itself and all of them against data_bytes, the number of
// bytes that follow the header. `name` stands in the messages.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& name);

// The JSON text, padded with spaces so that the data after it and the 8-byte length before it are aligned.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace tessera::data
