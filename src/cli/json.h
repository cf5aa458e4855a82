// JSON as the program prints it.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tessera::cli {

// Paths and environment variables need not be UTF-8, which JSON must be; such bytes become U+FFFD.
inline std::string dump_json(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tessera::cli
