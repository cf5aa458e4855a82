// What a device has whose kernels are made of code that takes long to compile.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace tessera {

// Machine code, and plans of libraries, by names of letters, digits, '.' and '-'. They are of one model of
// the device and of its libraries, and say so of themselves: where others are wanted they are as good as not
// there.
using KernelArtifacts = std::map<std::string, std::string>;

// An extension of a device.
class ArtifactKeeper {
 public:
  virtual ~ArtifactKeeper() = default;

  // Those of all kernels of the device that are made while `work` goes on, compiled where they are not yet.
  // Throws what `work` throws, and Error(unsupported) where the compiler is not there.
  virtual KernelArtifacts collect(const std::function<void()>& work) = 0;
  // Kernels are made of these as long as what is returned lives, and compile what is not among them.
  virtual std::shared_ptr<void> offer(KernelArtifacts artifacts) = 0;
};

}  // namespace tessera
