// Contents of inputs that users name: NAME=FILE.npy, or FILE.npz with arrays called as the inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"

namespace tessera::cli {

// Throws Error(invalid_argument) on another form, and as data::read_npy() and data::read_npz().
std::map<std::string, Tensor> read_inputs(const std::vector<std::string>& given);

}  // namespace tessera::cli
