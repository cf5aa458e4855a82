// Any bytes either are refused with an Error or give as many finite samples as the header told of.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/sound.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tessera::data::EncodedSound;
  constexpr int64_t kMost = 1 << 16;
  try {
    EncodedSound sound({reinterpret_cast<const std::byte*>(data), size}, "input", {.samples = kMost});
    for (const int64_t rate : {sound.info().rate, int64_t{16000}}) {
      const int64_t first = sound.frames_at(rate) / 3;
      const int64_t count = std::min(sound.frames_at(rate) - first, kMost);
      std::vector<float> samples(static_cast<size_t>(count));
      sound.decode(rate, first, samples);
      if (!std::ranges::all_of(samples, [](float sample) { return std::isfinite(sample); })) std::abort();
    }
  } catch (const tessera::Error& error) {
    if (error.code() != tessera::ErrorCode::invalid_file) std::abort();
  }
  return 0;
}
