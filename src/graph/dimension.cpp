#include "tessera/graph/dimension.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr std::string_view kFloor = "floor(";

// Extents beyond 64 bits come from damaged text only. The least number is refused as well: it has no
// magnitude.
int64_t checked(bool overflows, int64_t value) {
  require(!overflows && value != std::numeric_limits<int64_t>::min(), ErrorCode::invalid_graph,
          "a dimension does not fit into 64 bits");
  return value;
}

int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  const bool overflows = __builtin_add_overflow(a, b, &sum);
  return checked(overflows, sum);
}

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &product);
  return checked(overflows, product);
}

void check_terms(size_t count) {
  require(count <= Dimension::kMaximumTerms, ErrorCode::invalid_graph,
          "a dimension has more than {} terms when it is multiplied out", Dimension::kMaximumTerms);
}

int64_t floor_quotient(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return quotient - (value % divisor < 0 ? 1 : 0);
}

// Recursive descent over: sum := term (('+'|'-') term)*; term := factor ('*' factor)*;
// factor := number | symbol | 'floor(' sum ',' number ')' | '(' sum ')' | '-' factor.
class DimensionParser {
 public:
  explicit DimensionParser(std::string_view text) : text_(text) {}

  Dimension parse() {
    Dimension result = sum();
    skip_space();
    if (position_ != text_.size()) wrong();
    return result;
  }

 private:
  [[noreturn]] void wrong() const {
    fail(ErrorCode::invalid_graph, "'{}' is not a dimension (at character {})", text_, position_ + 1);
  }
  void skip_space() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool take(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  Dimension sum() {
    std::vector<Dimension> terms{term()};
    for (;;) {
      if (take('+')) {
        terms.push_back(term());
      } else if (take('-')) {
        terms.push_back(term() * Dimension(-1));
      } else {
        return Dimension::sum(terms);
      }
    }
  }
  Dimension term() {
    Dimension result = factor();
    while (take('*')) result = result * factor();
    return result;
  }
  int64_t number() {
    skip_space();
    int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + position_, end, value);
    if (error != std::errc()) wrong();
    position_ = static_cast<size_t>(rest - text_.data());
    return value;
  }
  Dimension factor() {
    if (++depth_ > 100) wrong();
    skip_space();
    Dimension result;
    if (position_ >= text_.size()) wrong();
    const char c = text_[position_];
    if (take('(')) {
      result = sum();
      if (!take(')')) wrong();
    } else if (take('-')) {
      result = Dimension(-1) * factor();
    } else if (is_digit(c)) {
      result = number();
    } else if (text_.substr(position_).starts_with(kFloor)) {
      position_ += kFloor.size();
      const Dimension dividend = sum();
      if (!take(',')) wrong();
      const int64_t divisor = number();
      if (divisor <= 0 || !take(')')) wrong();
      result = dividend.floor_divide(divisor);
    } else if (is_letter(c) || c == '_') {
      const size_t start = position_;
      const auto goes_on = [](char x) { return is_letter(x) || is_digit(x) || x == '_'; };
      while (position_ < text_.size() && goes_on(text_[position_])) ++position_;
      result = Dimension::symbol(std::string(text_.substr(start, position_ - start)));
    } else {
      wrong();
    }
    --depth_;
    return result;
  }

  std::string_view text_;
  size_t position_ = 0;
  int depth_ = 0;  // foreign text must not overflow the stack
};

// How deep the parentheses of the text are; in a normal form each is a floor division's.
size_t nesting_of(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  for (char c : text) {
    if (c == '(') deepest = std::max(deepest, ++depth);
    if (c == ')') --depth;
  }
  return deepest;
}

// A factor of a monomial is a symbol or "floor(expression, divisor)". Evaluates the latter after
// substitution.
Dimension substitute_factor(const std::string& factor, const SymbolBindings& bindings) {
  if (!factor.starts_with(kFloor)) {
    const auto bound = bindings.find(factor);
    return bound == bindings.end() ? Dimension::symbol(factor) : Dimension(bound->second);
  }
  const size_t comma = factor.rfind(',');
  const Dimension dividend =
      parse_dimension(std::string_view(factor).substr(kFloor.size(), comma - kFloor.size()));
  return dividend.substitute(bindings).floor_divide(
      parse_dimension(factor.substr(comma + 1, factor.size() - comma - 2)).value());
}

}  // namespace

Dimension Dimension::symbol(const std::string& name) {
  return from({{{name}, 1}});
}

Dimension Dimension::from(Polynomial polynomial) {
  std::erase_if(polynomial, [](const auto& term) { return term.second == 0; });
  if (polynomial.empty()) return {};
  if (polynomial.size() == 1 && polynomial.begin()->first.empty()) return {polynomial.begin()->second};
  check_terms(polynomial.size());
  size_t characters = 0;
  for (const auto& [monomial, coefficient] : polynomial) {
    for (const std::string& factor : monomial) characters += factor.size();
  }
  require(characters <= kMaximumCharacters, ErrorCode::invalid_graph,
          "a dimension takes more than {} characters when it is multiplied out", kMaximumCharacters);
  Dimension result;
  result.polynomial_ = std::make_shared<const Polynomial>(std::move(polynomial));
  return result;
}

Dimension::Polynomial Dimension::terms() const {
  if (polynomial_) return *polynomial_;
  return constant_ == 0 ? Polynomial{} : Polynomial{{{}, constant_}};
}

int64_t Dimension::value() const {
  require(is_static(), ErrorCode::invalid_argument,
          "the dimension '{}' has no number yet: specialize the graph", to_string());
  return constant_;
}

Dimension Dimension::sum(std::span<const Dimension> terms) {
  if (terms.size() == 1) return terms.front();
  int64_t constant = 0;
  Polynomial result;
  for (const Dimension& term : terms) {
    if (term.is_static()) {
      constant = checked_sum(constant, term.constant_);
      continue;
    }
    for (const auto& [monomial, coefficient] : *term.polynomial_) {
      const auto total = result.try_emplace(monomial, 0).first;
      total->second = checked_sum(total->second, coefficient);
      if (total->second == 0) result.erase(total);
    }
    check_terms(result.size());
  }
  if (const auto own = result.find({}); own != result.end()) {
    constant = checked_sum(constant, own->second);
    result.erase(own);
  }
  if (constant != 0) result.emplace(Monomial{}, constant);
  return from(std::move(result));
}

Dimension Dimension::operator+(const Dimension& other) const {
  if (is_static() && other.is_static()) return {checked_sum(constant_, other.constant_)};
  return sum(std::array{*this, other});
}

Dimension Dimension::operator-(const Dimension& other) const {
  return *this + other * Dimension(-1);
}

Dimension Dimension::operator*(const Dimension& other) const {
  if (is_static() && other.is_static()) return {checked_product(constant_, other.constant_)};
  Polynomial result;
  for (const auto& [left, left_coefficient] : terms()) {
    for (const auto& [right, right_coefficient] : other.terms()) {
      Monomial product;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(product));
      int64_t& total = result[product];
      total = checked_sum(total, checked_product(left_coefficient, right_coefficient));
      check_terms(result.size());
    }
  }
  return from(std::move(result));
}

bool Dimension::operator==(const Dimension& other) const {
  if (is_static() || other.is_static())
    return is_static() == other.is_static() && constant_ == other.constant_;
  return polynomial_ == other.polynomial_ || *polynomial_ == *other.polynomial_;
}

Dimension Dimension::floor_divide(int64_t divisor) const {
  if (is_static()) return {floor_quotient(constant_, divisor)};
  if (divisor == 1) return *this;
  // Terms that divide leave the floor, and of the number all that divides, so that equal extents look alike
  // whichever way they came to be; what remains is opaque.
  Polynomial whole;
  Polynomial rest;
  for (const auto& [monomial, coefficient] : *polynomial_) {
    if (coefficient % divisor == 0) {
      whole[monomial] = coefficient / divisor;
    } else if (monomial.empty()) {
      whole[monomial] = floor_quotient(coefficient, divisor);
      const int64_t remainder = coefficient % divisor;  // the product with the divisor may be beyond 64 bits
      rest[monomial] = remainder < 0 ? remainder + divisor : remainder;
    } else {
      rest[monomial] = coefficient;
    }
  }
  if (rest.empty()) return from(std::move(whole));
  const Dimension remainder = from(std::move(rest));
  if (remainder.is_static()) return from(std::move(whole)) + floor_quotient(remainder.constant_, divisor);
  const std::string dividend = remainder.to_string();
  require(nesting_of(dividend) < kMaximumFloors, ErrorCode::invalid_graph,
          "a dimension nests more than {} floor divisions", kMaximumFloors);
  return from(std::move(whole)) + symbol(fmt::format("floor({}, {})", dividend, divisor));
}

std::optional<Dimension> Dimension::divide_exactly(const Dimension& divisor) const {
  const Polynomial divisor_terms = divisor.terms();
  if (divisor_terms.size() != 1) return std::nullopt;
  const auto& [divisor_monomial, divisor_coefficient] = *divisor_terms.begin();
  Polynomial result;
  for (const auto& [monomial, coefficient] : terms()) {
    if (coefficient % divisor_coefficient != 0) return std::nullopt;
    Monomial quotient = monomial;
    for (const std::string& factor : divisor_monomial) {
      const auto found = std::find(quotient.begin(), quotient.end(), factor);
      if (found == quotient.end()) return std::nullopt;
      quotient.erase(found);
    }
    result[quotient] = coefficient / divisor_coefficient;
  }
  return from(std::move(result));
}

Dimension Dimension::substitute(const SymbolBindings& bindings) const {
  if (is_static()) return *this;
  std::vector<Dimension> terms;
  for (const auto& [monomial, coefficient] : *polynomial_) {
    Dimension term(coefficient);
    for (const std::string& factor : monomial) term = term * substitute_factor(factor, bindings);
    terms.push_back(std::move(term));
  }
  return sum(terms);
}

void Dimension::collect_symbols(std::set<std::string>& symbols) const {
  if (is_static()) return;
  for (const auto& [monomial, coefficient] : *polynomial_) {
    for (const std::string& factor : monomial) {
      if (factor.starts_with(kFloor)) {
        const std::string_view inside = std::string_view(factor).substr(kFloor.size());
        parse_dimension(inside.substr(0, inside.rfind(','))).collect_symbols(symbols);
      } else {
        symbols.insert(factor);
      }
    }
  }
}

std::string Dimension::to_string() const {
  if (is_static()) return std::to_string(constant_);
  std::string text;
  // Reverse order puts the constant term, which sorts first, at the end.
  for (auto term = polynomial_->rbegin(); term != polynomial_->rend(); ++term) {
    const auto& [monomial, coefficient] = *term;
    const int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    text += text.empty() ? (coefficient < 0 ? "-" : "") : (coefficient < 0 ? " - " : " + ");
    if (monomial.empty()) {
      text += std::to_string(magnitude);
    } else {
      if (magnitude != 1) text += std::to_string(magnitude) + "*";
      text += fmt::format("{}", fmt::join(monomial, "*"));
    }
  }
  return text;
}

Dimension parse_dimension(std::string_view text) {
  return DimensionParser(text).parse();
}

SymbolicShape to_symbolic(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

bool is_static(const SymbolicShape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dimension& extent) { return extent.is_static(); });
}

Shape to_static(const SymbolicShape& shape) {
  Shape result;
  result.reserve(shape.size());
  for (const Dimension& extent : shape) result.push_back(extent.value());
  return result;
}

SymbolicShape substitute(const SymbolicShape& shape, const SymbolBindings& bindings) {
  SymbolicShape result;
  result.reserve(shape.size());
  for (const Dimension& extent : shape) result.push_back(extent.substitute(bindings));
  return result;
}

Dimension element_count(const SymbolicShape& shape) {
  Dimension count(1);
  for (const Dimension& extent : shape) count = count * extent;
  return count;
}

std::string to_string(const SymbolicShape& shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis == 0 ? "" : ", ") + shape[axis].to_string();
  return text + "]";
}

SymbolicShape broadcast_shapes(const SymbolicShape& a, const SymbolicShape& b) {
  SymbolicShape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {  // i counts from the innermost axis
    const Dimension x = i < a.size() ? a[a.size() - 1 - i] : Dimension(1);
    const Dimension y = i < b.size() ? b[b.size() - 1 - i] : Dimension(1);
    require(x == y || x == Dimension(1) || y == Dimension(1), ErrorCode::invalid_graph,
            "shapes {} and {} do not broadcast: axis -{} is {} against {}", to_string(a), to_string(b), i + 1,
            x.to_string(), y.to_string());
    result[result.size() - 1 - i] = x == Dimension(1) ? y : x;
  }
  return result;
}

}  // namespace tessera
