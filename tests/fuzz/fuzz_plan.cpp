// Any bytes either are refused with an Error or are a plan whose weights can be read and whose description
// is written back as an equal one.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/infer/plan.h"

#include "fuzz.h"
#include "infer/plan_text.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace infer = tessera::infer;
  try {
    const infer::Plan plan = infer::Plan::parse(std::as_bytes(std::span(data, size)), "input");
    for (const std::string& name : plan.weight_names()) (void)plan.weight(name);
    const std::string text = infer::format_description(plan.description());
    if (infer::format_description(infer::parse_description(text)) != text) std::abort();
  } catch (const tessera::Error&) {
  }
  return 0;
}
