// Tokens by id and ids by token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::text {

class Vocabulary {
 public:
  // Of a token that is there already, the id becomes another. Throws Error(invalid_file) naming `file` for an
  // id below 0 or beyond the largest that is allowed.
  void add(std::string_view token, int64_t id, std::string_view file);

  std::optional<int32_t> find(std::string_view token) const;
  // "": none has that id.
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  int64_t size() const { return std::ssize(tokens_); }  // the largest id and one
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace tessera::text
