#include "text/vocabulary.h"

#include "tessera/base/error.h"

namespace tessera::text {
namespace {

// An id of a small file must not make a large table; real vocabularies number their tokens without holes.
constexpr int64_t kHoles = 100'000;

}  // namespace

void Vocabulary::add(std::string_view token, int64_t id, std::string_view file) {
  const int64_t largest = 2 * std::ssize(ids_) + kHoles;
  require(id >= 0 && id <= largest, ErrorCode::invalid_file,
          "{}: a token has the id {}, expected 0 to {} here", file, id, largest);
  if (id >= size()) tokens_.resize(static_cast<size_t>(id) + 1);
  tokens_[static_cast<size_t>(id)] = token;
  ids_.insert_or_assign(std::string(token), static_cast<int32_t>(id));
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tessera::text
