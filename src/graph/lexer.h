// Splits graph text into tokens with line numbers.
#pragma once

#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

enum class TokenKind { word, value, number, text, symbol, end };

// `text` holds the word, the value's name without '%', the number as written, the unquoted text, or the
// symbol.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  size_t begin = 0;  // offset in the source
};

class Lexer {
 public:
  Lexer(std::string_view source, std::string source_name) : source_(source), name_(std::move(source_name)) {
    advance();
  }

  const Token& peek() const { return token_; }
  Token take();
  bool take_if(std::string_view symbol_or_word);
  void expect(std::string_view symbol_or_word);
  std::string expect(TokenKind kind, std::string_view what);

  // The source text from the current token up to the first of `stops` outside parentheses; used for
  // dimensions.
  std::string take_until(std::string_view stops);

  [[noreturn]] void wrong(std::string_view expected) const;
  template <typename... Arguments>
  [[noreturn]] void fail_here(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail(ErrorCode::invalid_graph, "{}:{}: {}", name_, line(),
         fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  size_t line() const;
  size_t remaining() const { return source_.size() - position_; }  // characters after the current token

 private:
  void advance();

  std::string_view source_;
  std::string name_;
  size_t position_ = 0;
  Token token_;
};

}  // namespace tessera
