// One long text of tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "tessera/data/token_shards.h"

namespace tessera::data {

// May be read from several threads.
class TokenText {
 public:
  virtual ~TokenText() = default;
  virtual int64_t size() const = 0;
  // Tokens from `begin` on, of which there are so many.
  virtual void read(int64_t begin, std::span<int32_t> tokens) const = 0;
};

// All documents of a set one after another, each followed by the set's separator where there is one. Throws
// Error(invalid_argument) where documents have two fields.
std::shared_ptr<const TokenText> joined_text(std::shared_ptr<const TokenSet> set);

// The bytes that read_byte_windows() reads. Throws as that does.
std::shared_ptr<const TokenText> byte_text(const std::filesystem::path& path);

}  // namespace tessera::data
