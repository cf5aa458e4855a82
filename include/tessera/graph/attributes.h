// Named constants of a node: axes, strides, epsilon, ...
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/dimension.h"

namespace tessera {

// In the order of the variant below.
enum class AttributeKind {
  boolean,
  integer,
  real,
  text,
  data_type,
  integers,
  reals,
  texts,
  shape,
  tensor,
};

std::string_view to_string(AttributeKind kind);

class Attribute {
 public:
  using Variant = std::variant<bool, int64_t, double, std::string, DataType, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, SymbolicShape, Tensor>;

  // Implicit, so that attribute lists read as {{"axis", 1}, {"epsilon", 1e-5}}.
  Attribute(bool value) : value_(value) {}                                          // NOLINT
  Attribute(int value) : value_(int64_t{value}) {}                                  // NOLINT
  Attribute(int64_t value) : value_(value) {}                                       // NOLINT
  Attribute(double value) : value_(value) {}                                        // NOLINT
  Attribute(const char* value) : value_(std::string(value)) {}                      // NOLINT
  Attribute(std::string value) : value_(std::move(value)) {}                        // NOLINT
  Attribute(DataType value) : value_(value) {}                                      // NOLINT
  Attribute(std::vector<int64_t> value) : value_(std::move(value)) {}               // NOLINT
  Attribute(std::initializer_list<int64_t> v) : value_(std::vector<int64_t>(v)) {}  // NOLINT
  Attribute(std::vector<double> value) : value_(std::move(value)) {}                // NOLINT
  Attribute(std::vector<std::string> value) : value_(std::move(value)) {}           // NOLINT
  Attribute(SymbolicShape value) : value_(std::move(value)) {}                      // NOLINT
  Attribute(Tensor value) : value_(std::move(value)) {}                             // NOLINT

  AttributeKind kind() const { return static_cast<AttributeKind>(value_.index()); }
  const Variant& variant() const { return value_; }
  bool operator==(const Attribute& other) const;  // reals and tensors by bits

 private:
  Variant value_;
};

// A sorted map with typed access. Getters throw Error(internal) on a missing name or another kind: the schema
// has filled in the defaults and checked the kinds before anything reads them.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> entries) : entries_(entries) {}

  bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  const Attribute& at(std::string_view name) const;
  void set(const std::string& name, Attribute value) { entries_.insert_or_assign(name, std::move(value)); }
  void erase(std::string_view name);
  const std::map<std::string, Attribute, std::less<>>& entries() const { return entries_; }
  bool operator==(const Attributes&) const = default;

  bool boolean(std::string_view name) const { return get<bool>(name); }
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  double real(std::string_view name) const { return get<double>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  DataType data_type(std::string_view name) const { return get<DataType>(name); }
  const std::vector<int64_t>& integers(std::string_view name) const {
    return get<std::vector<int64_t>>(name);
  }
  const std::vector<double>& reals(std::string_view name) const { return get<std::vector<double>>(name); }
  const std::vector<std::string>& texts(std::string_view name) const {
    return get<std::vector<std::string>>(name);
  }
  const SymbolicShape& shape(std::string_view name) const { return get<SymbolicShape>(name); }
  const Tensor& tensor(std::string_view name) const { return get<Tensor>(name); }

 private:
  template <typename T>
  const T& get(std::string_view name) const {
    const T* value = std::get_if<T>(&at(name).variant());
    if (value == nullptr) throw_wrong_kind(name);
    return *value;
  }
  [[noreturn]] void throw_wrong_kind(std::string_view name) const;

  std::map<std::string, Attribute, std::less<>> entries_;
};

}  // namespace tessera
