// What is told of the tests: how many pass, in a line and on a page of the documentation.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "stored_test.h"

namespace tessera::onnx_suite {

// "node tests: 1700 of 1765"
std::string summary(const std::map<std::string, Outcome>& outcomes);

// Keeps what a person wrote there. `apart`: what the host has part in is told apart, on a device that is not
// the host. `data`, which is this machine's own folder, is left out of messages.
void write_page(const std::filesystem::path& page, const std::map<std::string, Outcome>& outcomes, bool apart,
                const std::filesystem::path& data);

}  // namespace tessera::onnx_suite
