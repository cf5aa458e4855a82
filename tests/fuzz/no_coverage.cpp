// What the instrumented library calls in a program that is no fuzzer: at each of its blocks, for which
// coverage.cpp has another function that a fuzzer finds first, and at comparisons of numbers that libFuzzer
// does not know.
#define UNUSED_CALLBACK extern "C" __attribute__((weak)) void

UNUSED_CALLBACK __sanitizer_cov_trace_pc() {}
UNUSED_CALLBACK __sanitizer_cov_trace_cmpf(float, float) {}
UNUSED_CALLBACK __sanitizer_cov_trace_cmpd(double, double) {}
