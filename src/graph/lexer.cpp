#include "graph/lexer.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {
namespace {

bool is_name_character(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '/' || c == '-' || c == ':';
}

}  // namespace

size_t Lexer::line() const {
  const size_t end = std::min(token_.begin, source_.size());
  return 1 + static_cast<size_t>(
                 std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

void Lexer::wrong(std::string_view expected) const {
  fail_here("expected {}, found {}", expected,
            token_.kind == TokenKind::end ? "the end" : "'" + token_.text + "'");
}

void Lexer::advance() {
  for (;;) {  // white space and comments to the end of the line
    while (position_ < source_.size() && is_space(source_[position_])) ++position_;
    if (position_ >= source_.size() || source_[position_] != '#') break;
    while (position_ < source_.size() && source_[position_] != '\n') ++position_;
  }
  token_ = {TokenKind::end, "", position_};
  if (position_ >= source_.size()) return;
  const char c = source_[position_];
  const auto take_while = [&](auto&& predicate) {
    const size_t start = position_;
    while (position_ < source_.size() && predicate(source_[position_])) ++position_;
    token_.text = std::string(source_.substr(start, position_ - start));
  };
  if (c == '%') {
    ++position_;
    take_while([](char x) { return is_name_character(x) && x != ':'; });
    token_.kind = TokenKind::value;
  } else if (c == '"') {
    ++position_;
    token_.kind = TokenKind::text;
    for (; position_ < source_.size() && source_[position_] != '"'; ++position_) {
      if (source_[position_] != '\\') {
        token_.text += source_[position_];
      } else if (++position_ < source_.size()) {
        token_.text += source_[position_] == 'n' ? '\n' : source_[position_];
      }
    }
    if (position_ >= source_.size()) fail_here("the text that starts here has no closing quote");
    ++position_;
  } else if (is_digit(c) || c == '-') {
    token_.kind = TokenKind::number;
    take_while([](char x) { return is_letter(x) || is_digit(x) || x == '.' || x == '-' || x == '+'; });
  } else if (is_letter(c) || c == '_') {
    token_.kind = TokenKind::word;
    take_while([](char x) { return is_name_character(x) && x != ':'; });
  } else {
    token_.kind = TokenKind::symbol;
    token_.text = std::string(1, c);
    ++position_;
  }
}

Token Lexer::take() {
  Token token = token_;
  advance();
  return token;
}

bool Lexer::take_if(std::string_view symbol_or_word) {
  if ((token_.kind != TokenKind::symbol && token_.kind != TokenKind::word) || token_.text != symbol_or_word)
    return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view symbol_or_word) {
  if (!take_if(symbol_or_word)) wrong("'" + std::string(symbol_or_word) + "'");
}

std::string Lexer::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) wrong(what);
  return take().text;
}

std::string Lexer::take_until(std::string_view stops) {
  size_t end = token_.begin;
  int depth = 0;
  while (end < source_.size() && (depth > 0 || stops.find(source_[end]) == std::string_view::npos)) {
    if (source_[end] == '(') ++depth;
    if (source_[end] == ')') --depth;
    ++end;
  }
  std::string text(source_.substr(token_.begin, end - token_.begin));
  while (!text.empty() && is_space(text.back())) text.pop_back();
  position_ = end;
  advance();
  return text;
}

}  // namespace tessera
