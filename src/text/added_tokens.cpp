#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace tessera::text {
namespace {

bool word_before(std::string_view text, size_t end) {
  if (end == 0) return false;
  size_t at = character_before(text, end);
  return is_word_character(next_character(text, at));
}

bool word_after(std::string_view text, size_t begin) {
  return begin < text.size() && is_word_character(next_character(text, begin));
}

size_t space_before(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t last = character_before(text, end);
    size_t at = last;
    if (!is_white_space(next_character(text, at))) break;
    end = last;
  }
  return end;
}

size_t space_after(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t at = begin;
    if (!is_white_space(next_character(text, at))) break;
    begin = at;
  }
  return begin;
}

}  // namespace

void AddedTokens::add(const AddedToken& token, std::string_view pattern) {
  if (token.special) special_.insert(token.id);
  if (pattern.empty()) return;
  (token.normalized ? normalized_ : raw_).insert(pattern, static_cast<int32_t>(tokens_.size()));
  (token.normalized ? any_normalized_ : any_raw_) = true;
  tokens_.push_back(token);
}

void AddedTokens::find(std::string_view text, bool normalized, std::vector<TextPart>& parts) const {
  const ByteTrie& trie = normalized ? normalized_ : raw_;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    if (!trie.may_begin_with(text[at])) {
      ++at;
      continue;
    }
    const ByteTrie::Match match = trie.longest(text.substr(at));
    if (match.value < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    size_t begin = at;
    size_t end = at + match.length;
    at = end;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.left_strip) begin = std::max(space_before(text, begin), done);
    if (token.right_strip) end = space_after(text, end);
    if (begin > done) parts.push_back({-1, static_cast<uint32_t>(done), static_cast<uint32_t>(begin)});
    parts.push_back({token.id, static_cast<uint32_t>(std::max(begin, done)), static_cast<uint32_t>(end)});
    done = std::max(done, end);
    at = std::max(at, done);
  }
  if (done < text.size())
    parts.push_back({-1, static_cast<uint32_t>(done), static_cast<uint32_t>(text.size())});
}

}  // namespace tessera::text
