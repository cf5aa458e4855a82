// Values of foreign JSON, each with the file and the key in its message.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

#include "text/unicode.h"

namespace tessera::text {

using Json = nlohmann::json;

inline Json parse_json(std::string_view text, std::string_view file) {
  Json json = Json::parse(text, nullptr, false);
  require(!json.is_discarded(), ErrorCode::invalid_file, "{}: no JSON", file);
  return json;
}

// An object of such a file, such as one of its parts.
class JsonObject {
 public:
  // `where` is what messages call it: "model".
  JsonObject(const Json& json, std::string where, std::string_view file)
      : json_(json), where_(std::move(where)), file_(file) {
    require(json.is_object(), ErrorCode::invalid_file, "{}: {} is {}, expected an object", file_, where_,
            json.type_name());
  }

  const std::string& where() const { return where_; }
  std::string_view file() const { return file_; }

  // Null: not there, or null.
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& at(const char* key) const {
    const Json* found = find(key);
    require(found != nullptr, ErrorCode::invalid_file, "{}: {} has no '{}'", file_, where_, key);
    return *found;
  }
  JsonObject object(const char* key) const { return {at(key), where_ + "." + key, file_}; }
  const Json& array(const char* key) const {
    const Json& value = at(key);
    require(value.is_array(), ErrorCode::invalid_file, "{}: {}.{} is {}, expected a list", file_, where_, key,
            value.type_name());
    return value;
  }

  std::string text(const char* key) const { return text_of(at(key), key); }
  std::string text(const char* key, const std::string& fallback) const {
    const Json* found = find(key);
    return found == nullptr ? fallback : text_of(*found, key);
  }
  bool boolean(const char* key, bool fallback) const {
    const Json* found = find(key);
    if (found == nullptr) return fallback;
    require(found->is_boolean(), ErrorCode::invalid_file, "{}: {}.{} is {}, expected true or false", file_,
            where_, key, found->type_name());
    return found->get<bool>();
  }
  int64_t integer(const char* key) const { return integer_of(at(key), key); }
  int64_t integer(const char* key, int64_t fallback) const {
    const Json* found = find(key);
    return found == nullptr ? fallback : integer_of(*found, key);
  }

  // What is not known here is refused by its name, rather than left out.
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorCode::unsupported, "{}: {} {} is not supported", file_, where_, what);
  }

 private:
  std::string text_of(const Json& value, const char* key) const {
    require(value.is_string(), ErrorCode::invalid_file, "{}: {}.{} is {}, expected a text", file_, where_,
            key, value.type_name());
    return value.get<std::string>();
  }
  int64_t integer_of(const Json& value, const char* key) const {
    require(value.is_number_integer(), ErrorCode::invalid_file, "{}: {}.{} is {}, expected a whole number",
            file_, where_, key, value.type_name());
    return value.get<int64_t>();
  }

  const Json& json_;
  std::string where_;
  std::string_view file_;
};

}  // namespace tessera::text
