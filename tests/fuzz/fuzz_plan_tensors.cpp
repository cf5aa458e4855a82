// Any text either is no plan with tensors or holds one that is written back as itself.
#include <cstdlib>
#include <string>

#include "device/cuda/cudnn/plan_tensors.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera::cuda;
  const auto parsed = parse_plan_with_tensors({reinterpret_cast<const char*>(data), size});
  if (!parsed.has_value() || parsed->tensors.empty()) return 0;
  const std::string written = with_tensors(parsed->tensors, parsed->plan);
  const auto again = parse_plan_with_tensors(written);
  if (!again.has_value() || with_tensors(again->tensors, again->plan) != written) std::abort();
  return 0;
}
