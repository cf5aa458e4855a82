// The golden values of tests/golden/: reading them, and the digests that stand there for whole tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/data/safetensors.h"

#include "test_folder.h"

namespace tessera::testing {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(TESSERA_TEST_FOLDER).parent_path() / "golden";
}

inline data::SafetensorsFile open_golden(const std::string& name) {
  return data::SafetensorsFile::open(golden_folder() / (name + ".safetensors"));
}

// Sum, L2 norm, elements 0 ... 15, and elements 0, s, ... 15 s with s = max(1, count / 16).
inline std::vector<double> digest(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
  }
  std::vector<double> result{sum, std::sqrt(squares)};
  for (size_t stride : {size_t{1}, std::max<size_t>(1, values.size() / 16)}) {
    for (size_t i = 0; i < 16; ++i) {
      result.push_back(i * stride < values.size() ? values[i * stride] : 0);
    }
  }
  return result;
}

// Within the bounds that tests/golden/README.md recommends for float32.
inline ::testing::AssertionResult digest_is_close(const std::vector<double>& values,
                                                  const std::vector<double>& golden, double t = 1e-4) {
  const std::vector<double> own = digest(values);
  const double root = std::sqrt(static_cast<double>(values.size()));
  const double norm = golden[1];
  for (size_t i = 0; i < own.size(); ++i) {
    const double allowed = i == 0   ? t * root * norm
                           : i == 1 ? t * norm
                                    : t * (std::abs(golden[i]) + 4 * norm / root);
    if (!(std::abs(own[i] - golden[i]) <= allowed)) {
      return ::testing::AssertionFailure()
             << fmt::format("{} is {:.9g}, expected {:.9g}, off by {:.3g} where {:.3g} is allowed",
                            i == 0   ? std::string("the sum")
                            : i == 1 ? std::string("the norm")
                                     : fmt::format("number {} of the digest", i),
                            own[i], golden[i], std::abs(own[i] - golden[i]), allowed);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tessera::testing
