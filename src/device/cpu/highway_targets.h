// Include before Highway: which instruction sets the loops are compiled for. SSSE3 and the Ice Lake variant
// of AVX-512 would add compile time and no speed here.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
