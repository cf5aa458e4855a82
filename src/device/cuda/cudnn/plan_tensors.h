// What a plan of cuDNN reads and writes beside the operands of its problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::cuda {

// cuDNN's frontend makes some graphs of several operations, which exchange tensors in a part of the workspace
// and read numbers from the host; some problems have operands of one number each. Who runs a plan gives it
// all of them.
struct PlanTensors {
  struct Scalar {
    int64_t number = 0;
    uint64_t bits = 0;  // its bytes, from the lowest; cuDNN knows its type
    bool operator==(const Scalar&) const = default;
  };
  struct Space {
    int64_t number = 0;
    int64_t offset = 0;  // in bytes
    // Set before each run: so many words of 32 bits, all of one value.
    int64_t words = 0;
    uint32_t value = 0;
    bool operator==(const Space&) const = default;
  };

  std::vector<Scalar> scalars;
  std::vector<Space> spaces;
  int64_t bytes = 0;  // of all spaces

  bool empty() const { return scalars.empty() && spaces.empty() && bytes == 0; }
  bool operator==(const PlanTensors&) const = default;
};

// One line of text with the plan's own after it; the plan's alone where there are no such tensors.
std::string with_tensors(const PlanTensors& tensors, const std::string& plan);

struct PlanWithTensors {
  PlanTensors tensors;
  std::string plan;
};
// Nothing for what with_tensors() did not write.
std::optional<PlanWithTensors> parse_plan_with_tensors(const std::string& text);

}  // namespace tessera::cuda
