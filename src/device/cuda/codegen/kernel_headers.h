// The files of kernels/ as text.
#pragma once

#include <span>

namespace tessera::cuda {

struct KernelHeader {
  const char* name;
  const char* text;
};
std::span<const KernelHeader> kernel_headers();

}  // namespace tessera::cuda
