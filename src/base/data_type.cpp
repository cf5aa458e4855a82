#include "tessera/base/data_type.h"

#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr bool in_the_order_of_the_enumeration() {
  for (size_t i = 0; i < std::size(kTypeTraits); ++i) {
    if (kTypeTraits[i].type != static_cast<DataType>(i)) return false;
  }
  return true;
}
static_assert(in_the_order_of_the_enumeration());

}  // namespace

DataType parse_data_type(std::string_view text) {
  std::vector<std::string> names;
  for (const TypeTraits& traits : kTypeTraits) {
    if (traits.name == text) return traits.type;
    names.emplace_back(traits.name);
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a data type{} (the types are {})", text,
       did_you_mean(text, names), fmt::join(names, ", "));
}

size_t size_of(DataType type) {
  require(!is_packed(type), ErrorCode::invalid_argument, "an element of {} is less than a byte",
          to_string(type));
  return static_cast<size_t>(bits_of(type)) / 8;
}

void fail_not_computed(DataType type) {
  fail(ErrorCode::invalid_argument, "nothing is computed in {}: cast it first", to_string(type));
}

}  // namespace tessera
