// The extent of one axis: a number, or a polynomial over named symbols such as batch or tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/shape.h"

namespace tessera {

// Values given to symbols by specialize().
using SymbolBindings = std::map<std::string, int64_t>;

// Kept in a normal form (sum of monomials with integer coefficients), so that equal extents compare equal.
// Floor division by a number, which convolutions of symbolic images need, is an opaque factor of a monomial.
//
// Products of sums grow exponentially with their text, so the normal form is bounded: what would have more
// than kMaximumTerms monomials, take more than kMaximumCharacters, or nest more than kMaximumFloors floor
// divisions is refused with Error(invalid_graph).
class Dimension {
 public:
  static constexpr size_t kMaximumTerms = 256;
  static constexpr size_t kMaximumCharacters = 1 << 14;  // of the factors of all monomials
  static constexpr size_t kMaximumFloors = 40;

  Dimension() = default;  // 0
  // Implicit, because a plain number is the common extent.
  Dimension(int64_t value) : constant_(value) {}  // NOLINT(google-explicit-constructor)
  static Dimension symbol(const std::string& name);
  // In one pass: a normal form that grew by one `+` after the other would be copied as often.
  static Dimension sum(std::span<const Dimension> terms);

  bool is_static() const { return polynomial_ == nullptr; }
  // The number. Throws Error(invalid_argument) naming the expression while it holds a symbol.
  int64_t value() const;

  Dimension operator+(const Dimension& other) const;
  Dimension operator-(const Dimension& other) const;
  Dimension operator*(const Dimension& other) const;
  bool operator==(const Dimension& other) const;

  // Rounds towards minus infinity; divisor > 0.
  Dimension floor_divide(int64_t divisor) const;
  // The quotient when it is exact for every value of the symbols, else nothing. The divisor may be a number
  // or a single monomial.
  std::optional<Dimension> divide_exactly(const Dimension& divisor) const;

  // Replaces the bound symbols; others stay.
  Dimension substitute(const SymbolBindings& bindings) const;
  void collect_symbols(std::set<std::string>& symbols) const;

  // "32", "batch", "2*batch*tokens + 1", "floor(height + 1, 2)": parse_dimension reads the same text.
  std::string to_string() const;

 private:
  using Monomial = std::vector<std::string>;  // factors, sorted; empty for the constant term
  using Polynomial = std::map<Monomial, int64_t>;

  static Dimension from(Polynomial polynomial);
  Polynomial terms() const;

  int64_t constant_ = 0;
  std::shared_ptr<const Polynomial> polynomial_;  // null when static
};

// Throws Error(invalid_graph) on anything that to_string cannot have written.
Dimension parse_dimension(std::string_view text);

using SymbolicShape = std::vector<Dimension>;

SymbolicShape to_symbolic(const Shape& shape);
bool is_static(const SymbolicShape& shape);
// Throws Error(invalid_argument) while an extent is symbolic.
Shape to_static(const SymbolicShape& shape);
SymbolicShape substitute(const SymbolicShape& shape, const SymbolBindings& bindings);
Dimension element_count(const SymbolicShape& shape);
std::string to_string(const SymbolicShape& shape);
// NumPy broadcasting; a symbol fits itself and 1.
SymbolicShape broadcast_shapes(const SymbolicShape& a, const SymbolicShape& b);

}  // namespace tessera
