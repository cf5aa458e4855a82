// Arithmetic on values in the usual signs: Expression(x) * 0.5 + y.
#pragma once

#include <concepts>
#include <type_traits>

#include "tessera/ops/functions.h"

namespace tessera::ops {

// A value that + - * / apply to, with another one or a number; taken and given wherever a value is.
class Expression {
 public:
  // Implicit both ways, or each call of a layer and each sum would need a cast.
  Expression(Value* value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  operator Value*() const { return value_; }   // NOLINT(google-explicit-constructor)
  Value* operator->() const { return value_; }

 private:
  Value* value_;
};

template <typename T>
concept Term = std::same_as<T, Expression> || std::convertible_to<T, Value*> || std::is_arithmetic_v<T>;

// One side at least is an expression: two pointers or two numbers mean what they always did.
template <typename L, typename R>
concept Terms = Term<L> && Term<R> &&(std::same_as<L, Expression> || std::same_as<R, Expression>);

// A number as a scalar beside `other`, of its type.
template <Term T>
Value* term(const T& own, Value* other) {
  if constexpr (std::is_arithmetic_v<T>) {
    return constant_like(other, static_cast<double>(own));
  } else {
    return own;
  }
}

template <typename L, typename R>
requires Terms<L, R> Value* neighbor_of(const L& left, const R& right) {
  if constexpr (std::is_arithmetic_v<L>) {
    return right;
  } else {
    return left;
  }
}

template <typename L, typename R>
requires Terms<L, R> Expression operator+(const L& left, const R& right) {
  Value* known = neighbor_of(left, right);
  return add(term(left, known), term(right, known));
}
template <typename L, typename R>
requires Terms<L, R> Expression operator-(const L& left, const R& right) {
  Value* known = neighbor_of(left, right);
  return subtract(term(left, known), term(right, known));
}
template <typename L, typename R>
requires Terms<L, R> Expression operator*(const L& left, const R& right) {
  Value* known = neighbor_of(left, right);
  return multiply(term(left, known), term(right, known));
}
template <typename L, typename R>
requires Terms<L, R> Expression operator/(const L& left, const R& right) {
  Value* known = neighbor_of(left, right);
  return divide(term(left, known), term(right, known));
}
inline Expression operator-(const Expression& x) {
  return negate(x);
}

}  // namespace tessera::ops
