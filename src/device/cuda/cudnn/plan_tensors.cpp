#include "device/cuda/cudnn/plan_tensors.h"

#include <sstream>

#include <fmt/format.h>

namespace tessera::cuda {
namespace {

// cuDNN's own text is JSON and begins otherwise.
constexpr const char* kMark = "tensors";

}  // namespace

std::string with_tensors(const PlanTensors& tensors, const std::string& plan) {
  if (tensors.empty()) return plan;
  std::string line =
      fmt::format("{} {} {} {}", kMark, tensors.bytes, tensors.scalars.size(), tensors.spaces.size());
  for (const PlanTensors::Scalar& scalar : tensors.scalars) {
    line += fmt::format(" {} {}", scalar.number, scalar.bits);
  }
  for (const PlanTensors::Space& space : tensors.spaces) {
    line += fmt::format(" {} {} {} {}", space.number, space.offset, space.words, space.value);
  }
  return line + '\n' + plan;
}

std::optional<PlanWithTensors> parse_plan_with_tensors(const std::string& text) {
  if (!text.starts_with(kMark)) return PlanWithTensors{.tensors = {}, .plan = text};
  const size_t end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream line(text.substr(0, end));
  std::string mark;
  PlanWithTensors result{.tensors = {}, .plan = text.substr(end + 1)};
  size_t scalars = 0;
  size_t spaces = 0;
  line >> mark >> result.tensors.bytes >> scalars >> spaces;
  for (size_t i = 0; line && i < scalars; ++i) {
    PlanTensors::Scalar scalar;
    line >> scalar.number >> scalar.bits;
    result.tensors.scalars.push_back(scalar);
  }
  for (size_t i = 0; line && i < spaces; ++i) {
    PlanTensors::Space space;
    line >> space.number >> space.offset >> space.words >> space.value;
    result.tensors.spaces.push_back(space);
  }
  // All that was announced, and nothing after it.
  if (!line || mark != kMark || line.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  return result;
}

}  // namespace tessera::cuda
