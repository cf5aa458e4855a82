// Any bytes either are no plan of cuDNN or one that is written back as they are.
#include <cstdlib>
#include <string>

#include "device/cuda/cudnn/saved_plan.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto saved = tessera::cuda::parse_saved_plan(bytes);
  if (saved.has_value() && (saved->choices < 0 || to_bytes(*saved) != bytes)) std::abort();
  return 0;
}
