// Which of the operands that its operator specifies a node has.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tessera {

class Value;

// Optional operands may be left out anywhere. Those that are there stand close together as the node's inputs,
// so that who walks through these meets no gaps.
class OperandPlaces {
 public:
  OperandPlaces() = default;
  // A place for each operand but the null ones. Those at the end count as not written at all.
  explicit OperandPlaces(std::span<Value* const> operands);

  size_t count() const { return count_; }  // of the operands that are there
  // Where the operand of that number in OperatorSchema::inputs stands; none when it is left out.
  std::optional<size_t> place(size_t specification) const;
  // The reverse; a variadic operand's values count on from its own number.
  size_t specification(size_t place) const;
  // The numbers of those left out before the last one that is there.
  const std::vector<size_t>& left_out() const { return left_out_; }
  bool operator==(const OperandPlaces&) const = default;

 private:
  size_t count_ = 0;
  std::vector<size_t> left_out_;  // ascending
};

}  // namespace tessera
