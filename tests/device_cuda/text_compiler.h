// The text of generated kernels through the compiler, for cards that are there or not.
#pragma once

#include <string>
#include <unordered_set>

#include "tessera/base/clock.h"

#include "device/cuda/codegen/module_cache.h"

namespace tessera::testing {

inline size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// "" where every kernel of the text begins with the wait for the one before it, or ahead: they are launched
// before what they read is written.
inline std::string missing_wait(const std::string& source) {
  const size_t beginnings =
      occurrences(source, "griddepcontrol.wait") + occurrences(source, "griddepcontrol.launch_dependents");
  if (occurrences(source, "__global__") == beginnings) return "";
  return "a kernel does not wait for the one before it:\n" + source;
}

// Compiles texts by NVRTC, each once for an architecture, as long as that takes no more than so large a share
// of all the time.
class TextCompiler {
 public:
  explicit TextCompiler(double share = 1) : share_(share) {}

  // What is wrong with the text.
  std::string check(const std::string& source, int architecture) {
    if (!seen_.insert(std::to_string(architecture) + source).second) return "";
    ++texts_;
    if (const std::string missing = missing_wait(source); !missing.empty()) return missing;
    if (compiling_ > share_ * seconds_since(start_)) return "";
    const auto begin = Clock::now();
    std::string message;
    try {
      cuda::compile_source(source, architecture);
      ++compiled_;
    } catch (const std::exception& error) {
      message = error.what();
    }
    compiling_ += seconds_since(begin);
    return message;
  }

  size_t texts() const { return texts_; }
  size_t compiled() const { return compiled_; }

 private:
  double share_;
  const Clock::time_point start_ = Clock::now();
  double compiling_ = 0;
  std::unordered_set<std::string> seen_;
  size_t texts_ = 0;
  size_t compiled_ = 0;
};

}  // namespace tessera::testing
