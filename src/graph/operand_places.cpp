#include "tessera/graph/operand_places.h"

#include <algorithm>

namespace tessera {

OperandPlaces::OperandPlaces(std::span<Value* const> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) {
      left_out_.push_back(i);
    } else {
      ++count_;
    }
  }
  while (!left_out_.empty() && left_out_.back() >= count_ + left_out_.size() - 1) left_out_.pop_back();
}

std::optional<size_t> OperandPlaces::place(size_t specification) const {
  const auto next = std::lower_bound(left_out_.begin(), left_out_.end(), specification);
  const size_t place = specification - static_cast<size_t>(next - left_out_.begin());
  const bool is_left_out = next != left_out_.end() && *next == specification;
  return is_left_out || place >= count_ ? std::nullopt : std::optional(place);
}

size_t OperandPlaces::specification(size_t place) const {
  size_t result = place;
  for (size_t left_out : left_out_) result += left_out <= result ? 1 : 0;
  return result;
}

}  // namespace tessera
