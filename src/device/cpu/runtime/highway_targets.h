// Include before Highway: which instruction sets the loops are compiled for. SSSE3 and the Ice Lake variant
// of AVX-512 would add compile time and no speed here.
#pragma once

#if defined(__SANITIZE_THREAD__)
// Which thread does what is the same for all of them: AVX2 and the least that every machine has are enough.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | (HWY_AVX2 - 1))
#elif defined(__SANITIZE_ADDRESS__)
// Only the best that the machine has ever runs, and each costs half a minute to compile with checks: one
// without AVX2 runs the least that every machine has.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
