#include "tessera/graph/attributes.h"

#include <algorithm>
#include <bit>

#include "tessera/base/error.h"
#include "tessera/graph/tensor_type.h"

namespace tessera {

std::string_view to_string(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::boolean:
      return "boolean";
    case AttributeKind::integer:
      return "integer";
    case AttributeKind::real:
      return "real";
    case AttributeKind::text:
      return "text";
    case AttributeKind::data_type:
      return "data type";
    case AttributeKind::integers:
      return "integers";
    case AttributeKind::reals:
      return "reals";
    case AttributeKind::texts:
      return "texts";
    case AttributeKind::shape:
      return "shape";
    case AttributeKind::tensor:
      return "tensor";
  }
  return "?";
}

namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

}  // namespace

bool Attribute::operator==(const Attribute& other) const {
  if (kind() != other.kind()) return false;
  return std::visit(
      [&]<typename T>(const T& mine) {
        const T& theirs = std::get<T>(other.value_);
        if constexpr (std::is_same_v<T, Tensor>) {
          return mine.identical(theirs);
        } else if constexpr (std::is_same_v<T, double>) {
          return same_bits(mine, theirs);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), same_bits);
        } else {
          return mine == theirs;
        }
      },
      value_);
}

const Attribute& Attributes::at(std::string_view name) const {
  const auto found = entries_.find(name);
  require(found != entries_.end(), ErrorCode::internal, "attribute '{}' is missing", name);
  return found->second;
}

void Attributes::erase(std::string_view name) {
  const auto found = entries_.find(name);
  if (found != entries_.end()) entries_.erase(found);
}

void Attributes::throw_wrong_kind(std::string_view name) const {
  fail(ErrorCode::internal, "attribute '{}' holds a {}, read as something else", name,
       to_string(at(name).kind()));
}

void check_type(const TensorType& type) {
  require(type.shape.size() <= kMaximumRank, ErrorCode::invalid_graph,
          "a tensor of {} axes, at most {} are possible", type.shape.size(), kMaximumRank);
  if (!type.is_static()) return;
  try {
    (void)type.bytes();
  } catch (const Error& error) {
    fail(ErrorCode::invalid_graph, "{}", error.what());
  }
}

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", to_string(type.data_type), to_string(type.shape));
}

}  // namespace tessera
