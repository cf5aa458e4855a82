// What kernels are made of, taken out of the caches for others and brought in from elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tessera/compile/kernel_artifacts.h"

namespace tessera::cuda {

// Names and contents are those of files that CacheFiles writes. They are found as long as what is returned
// lives.
std::shared_ptr<void> offer_artifacts(KernelArtifacts artifacts);
// Empty when nobody offers it.
std::string find_offered(const std::string& name);

// Notes what the caches of this process are asked for while it exists, by any thread.
class ArtifactRecording {
 public:
  ArtifactRecording();
  ~ArtifactRecording();
  ArtifactRecording(const ArtifactRecording&) = delete;
  ArtifactRecording& operator=(const ArtifactRecording&) = delete;

  // Said by the caches. Whether anybody records, for what it costs to say.
  static bool is_active();
  static void note_source(const std::string& source, int architecture);
  static void note_file(const std::string& name, const std::string& contents);

  // Compiles the sources that are in no file yet. Throws as machine_code_file().
  KernelArtifacts take();

 private:
  std::mutex mutex_;  // guards what follows
  std::set<std::pair<std::string, int>> sources_;
  KernelArtifacts files_;
};

}  // namespace tessera::cuda
