#include "device/cpu/runtime/instruction_set.h"

#include <dnnl.hpp>
#include <fmt/format.h>

namespace tessera::cpu {

std::string instruction_set() {
  using dnnl::cpu_isa;
  const cpu_isa present = dnnl::get_effective_cpu_isa();
  switch (present) {
    case cpu_isa::sse41:
      return "sse41";
    case cpu_isa::avx:
      return "avx";
    case cpu_isa::avx2:
      return "avx2";
    case cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case cpu_isa::avx2_vnni_2:
      return "avx2_vnni_2";
    case cpu_isa::avx512_core:
      return "avx512_core";
    case cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case cpu_isa::avx512_core_fp16:
      return "avx512_core_fp16";
    case cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    case cpu_isa::avx512_core_amx_fp16:
      return "avx512_core_amx_fp16";
    case cpu_isa::isa_default:
      break;
  }
  return fmt::format("{:#x}", static_cast<unsigned>(present));
}

}  // namespace tessera::cpu
