// Include before Highway: which instruction sets the loops are compiled for. SSSE3 and the Ice Lake variant
// of AVX-512 would add compile time and no speed here.
#pragma once

#if defined(__SANITIZE_ADDRESS__) && defined(TESSERA_HAS_AVX512)
// Only the best that the machine has ever runs, and each costs half a minute to compile with checks. The
// least that every machine has cannot be left out.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3_DL)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Which thread does what is the same for all of them.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | (HWY_AVX2 - 1))
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
