// Blocks that g++ instrumented (-fsanitize-coverage=trace-pc), counted as libFuzzer wants them from clang's.
#include <cstddef>
#include <cstdint>

extern "C" void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);

namespace {

// A block's is chosen by its address; two that share one look alike to the fuzzer. It reads all of them after
// each input.
constexpr size_t kCounters = size_t{1} << 16;
uint8_t counters[kCounters];

[[maybe_unused]] const bool kRegistered = [] {
  __sanitizer_cov_8bit_counters_init(counters, counters + kCounters);
  return true;
}();

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const auto address = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  // Fibonacci hashing: neighbors are a few bytes apart, libraries whole pages.
  ++counters[address * UINT64_C(0x9E3779B97F4A7C15) >> 48];
}
