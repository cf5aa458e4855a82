// What a stored test of the wheel is, and what comes of running it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/device.h"

#include "support/tolerance.h"

namespace tessera::onnx_suite {

// Folders of the package; names of tests in all but the first begin with theirs. The last holds whole
// networks, one beside the other, whose weights are constants and whose inputs a formula gives.
inline constexpr const char* kCollections[] = {"node", "simple", "pytorch-converted", "pytorch-operator",
                                               "light"};
inline constexpr const char* kNetworks = "light";

std::string collection_of(const std::string& name);

struct StoredTest {
  std::filesystem::path model;
  // What the names of the files of one run begin with, before "input_0.pb" and "output_0.pb".
  std::vector<std::string> runs;
  bool makes_inputs = false;                 // by the formula: none is stored
  testing::Tolerance tolerance{1e-7, 1e-3};  // the suite's own
};

// By name; `data` is the folder of the collections.
std::map<std::string, StoredTest> find_tests(const std::filesystem::path& data);

struct Outcome {
  std::string failure;  // "" when it passed
  std::string first_operator;
  size_t compared = 0;     // outputs
  bool host = false;       // computed a part for a device with memory of its own
  double last_places = 0;  // the largest error
};

Outcome run_test(const StoredTest& test, const std::shared_ptr<Device>& device);

}  // namespace tessera::onnx_suite
