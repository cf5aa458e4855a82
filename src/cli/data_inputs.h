// Contents of inputs that users name: NAME=FILE, a NumPy array, an image or JSON, or FILE.npz with arrays
// called as the inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tessera/base/tensor.h"
#include "tessera/program/module.h"

namespace tessera::cli {

// Arrays alone. Throws Error(invalid_argument) on another form, and as data::read_npy() and data::read_npz().
std::map<std::string, Tensor> read_arrays(const std::vector<std::string>& given);

// What a command was given.
struct GivenInputs {
  std::vector<std::string> files;  // NAME=FILE
  // What becomes of pixels where real numbers are wanted: (p / 255 - mean) / deviation, by channel; one
  // number is that of all channels.
  std::vector<double> mean = {0};
  std::vector<double> deviation = {1};
};
void add_inputs(CLI::App& command, GivenInputs& given);

// Images and JSON too, which become what is declared of the input. Throws as read_arrays(),
// Error(invalid_argument) on a file that does not fit, and Error(invalid_file) on one that is broken.
std::map<std::string, program::Item> read_inputs(const GivenInputs& given,
                                                 const std::vector<program::Declaration>& declared);

}  // namespace tessera::cli
