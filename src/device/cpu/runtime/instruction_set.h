// The processor's instructions, as far as kernels depend on them.
#pragma once

#include <string>

namespace tessera::cpu {

// What oneDNN uses, in its words: "avx512_core_vnni". ONEDNN_MAX_CPU_ISA lowers it.
std::string instruction_set();

}  // namespace tessera::cpu
