// What `tessera data bench` times: the stages of making one sample, and whole batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/encoded.h"
#include "tessera/data/source.h"

namespace tessera::cli {

struct BenchArguments {
  std::string folder;
  int64_t size = 224;    // of images
  int64_t rate = 16000;  // of sounds
  double seconds = 1;    // of theirs
  int64_t batch = 32;
  int64_t threads = 1;
  int64_t iterations = 20;
  int64_t warmup = 1;
  bool normalize = false;
  bool json = false;
  double cpu_share = 0;        // of what the device would decode
  bool balance = false;        // whether the fastest share is looked for
  std::string cache = "none";  // what of images stays in memory: "files" or "pixels"
  std::string device;          // that decodes images, and on which they arrive; "": none
};

struct Stage {
  std::string name;
  double seconds = 0;  // of one processor, for one sample
};

using EncodedSamples = std::shared_ptr<const data::EncodedSamples>;

// Of all threads of the program together.
double processor_seconds();

std::vector<Stage> image_stages(const data::EncodedSamples& samples, const BenchArguments& arguments);
std::vector<Stage> sound_stages(const data::EncodedSamples& samples, const BenchArguments& arguments);

std::shared_ptr<const data::Source> image_batches(EncodedSamples samples, const BenchArguments& arguments);
std::shared_ptr<const data::Source> sound_batches(EncodedSamples samples, const BenchArguments& arguments);

}  // namespace tessera::cli
