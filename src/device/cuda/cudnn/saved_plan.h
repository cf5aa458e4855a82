// A plan of cuDNN as it is kept on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::cuda {

struct SavedPlan {
  int64_t choices = 0;  // how many plans for the problem there are
  std::string text;     // empty where the plan cannot be written down
  bool operator==(const SavedPlan&) const = default;
};

// The number of choices, a new line, and the plan's text.
std::string to_bytes(const SavedPlan& saved);
// Nothing for what to_bytes() did not write, and for a plan without text.
std::optional<SavedPlan> parse_saved_plan(const std::string& bytes);

}  // namespace tessera::cuda
