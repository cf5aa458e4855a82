// How a seed's graph is compiled and run.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "tessera/compile/executable.h"

namespace tessera::testing {

struct Configuration {
  bool block = false;  // the graph is made of whole layers of a network, of the sizes of one
  Precision precision = Precision::fp32;
  bool deterministic = true;
  bool frozen = false;  // parameters and states never change: the graph has no updates
  std::optional<bool> recompute = {};
  std::set<std::string> disabled = {};  // passes
  std::string card = "h100";            // that is planned for

  // With which the device is told to compile it.
  CompileOptions options() const;
};

// The same seed gives the same configuration.
Configuration draw_configuration(uint64_t seed);

// "block, fp16, not deterministic, frozen, without fuse_matmul"
std::string to_string(const Configuration& configuration);

}  // namespace tessera::testing
