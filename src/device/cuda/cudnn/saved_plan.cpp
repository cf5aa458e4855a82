#include "device/cuda/cudnn/saved_plan.h"

#include <charconv>

#include <fmt/format.h>

namespace tessera::cuda {

std::string to_bytes(const SavedPlan& saved) {
  return fmt::format("{}\n{}", saved.choices, saved.text);
}

std::optional<SavedPlan> parse_saved_plan(const std::string& bytes) {
  SavedPlan saved;
  const char* end = bytes.data() + bytes.size();
  const auto [rest, error] = std::from_chars(bytes.data(), end, saved.choices);
  if (error != std::errc() || rest == end || *rest != '\n') return std::nullopt;
  saved.text.assign(rest + 1, end);
  if (saved.choices < 0 || saved.text.empty() || to_bytes(saved) != bytes) return std::nullopt;
  return saved;
}

}  // namespace tessera::cuda
