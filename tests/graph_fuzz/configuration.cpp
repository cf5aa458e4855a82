#include "graph_fuzz/configuration.h"

#include <vector>

#include "tessera/base/random.h"

namespace tessera::testing {
namespace {

// A stream of its own, so that the graph of a seed does not depend on how it is compiled.
constexpr uint64_t kStream = 78;

}  // namespace

CompileOptions Configuration::options() const {
  CompileOptions options;
  options.passes.precision = precision;
  options.passes.deterministic = deterministic;
  options.passes.frozen = frozen;
  options.passes.recompute = recompute;
  options.pipeline.disabled = disabled;
  options.pipeline.verify = true;
  return options;
}

Configuration draw_configuration(uint64_t seed) {
  const Random random(seed, kStream);
  uint64_t drawn = 0;
  const auto below = [&](uint64_t bound) { return random.below(drawn++, bound); };
  Configuration result;
  result.block = below(100) < 6;
  constexpr Precision kPrecisions[] = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
  result.precision = kPrecisions[below(4)];
  result.deterministic = below(3) > 0;
  result.frozen = below(100) < 15;
  if (const uint64_t choice = below(3); choice > 0) result.recompute = choice == 1;
  const uint64_t kind = below(100);
  for (const Pass& pass : pipeline({})) {
    const bool some = kind >= 10 && kind < 30 && below(4) == 0;
    if (kind < 10 || some) result.disabled.insert(pass.name);
  }
  constexpr const char* kCards[] = {"h100", "h100", "h100", "a100", "h200", "b200"};
  result.card = kCards[below(6)];
  return result;
}

std::string to_string(const Configuration& configuration) {
  std::string text = configuration.block ? "block, " : "";
  text += tessera::to_string(configuration.precision);
  if (!configuration.deterministic) text += ", not deterministic";
  if (configuration.frozen) text += ", frozen";
  if (configuration.recompute.has_value())
    text += *configuration.recompute ? ", with recomputation" : ", without recomputation";
  for (const std::string& pass : configuration.disabled)
    text += (pass == *configuration.disabled.begin() ? ", without " : " ") + pass;
  return text;
}

}  // namespace tessera::testing
