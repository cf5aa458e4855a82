// Labeled sounds in files as examples of a network.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/broken_samples.h"
#include "tessera/data/encoded.h"
#include "tessera/data/examples.h"
#include "tessera/data/sound.h"

namespace tessera::data {

// One folder for each class, as open_image_folder(), with files ending in .wav, .flac or .ogg.
std::shared_ptr<const EncodedSamples> open_sound_folder(const std::filesystem::path& folder,
                                                        const SplitOptions& options = {});

// Tar shards as open_tar_shards() has them, with KEY.wav, KEY.flac or KEY.ogg, and beside it KEY.cls, the
// number of its class, KEY.txt, its transcript, or both. All have a class, or none has. The index holds the
// lengths of sounds too.
std::shared_ptr<const EncodedSamples> open_sound_shards(const std::filesystem::path& folder,
                                                        const SplitOptions& options = {});

// Sounds with classes: tar shards where the folder holds some, or else a folder for each class. Throws
// Error(invalid_file) when they have transcripts alone.
std::shared_ptr<const EncodedSamples> open_labeled_sounds(const std::filesystem::path& folder,
                                                          const SplitOptions& options = {});

// By whichever of these the folder holds: tar shards, sounds with transcripts (transcripts.h), or else a
// folder for each class.
std::shared_ptr<const EncodedSamples> open_sounds(const std::filesystem::path& folder,
                                                  const SplitOptions& options = {});

// Whether the first file of the folder, or of one below it, that could be a sample is a sound and no image,
// or an archive that begins with a sound: of a large folder of images no more than that is looked at.
bool holds_sounds(const std::filesystem::path& folder);

struct SoundExampleOptions {
  int64_t rate = 16000;  // samples per second
  int64_t hop = 160;     // samples in a step of time, which rows are counted in
  // How long rows are: each sound has the shortest that holds it, and of one that is longer than the last
  // only a part is taken. More than one: all headers are read when the data is opened, by several threads,
  // but of sounds whose length is known without.
  std::vector<double> seconds = {1};
  bool random = false;  // as training: the part of a longer sound is at a random place, otherwise its middle
  BrokenSamples broken = BrokenSamples::fail;
  SoundLimits limits = {};
};

//   sounds:  int16 [batch, steps, hop], from its row's beginning on; zeros after its end
//   lengths: int32 [batch], samples that are not such zeros; at least 1, 0 in rows that count nothing
//   labels:  int32 [batch], -1 in rows that count nothing
class SoundExamples : public Examples {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range.
  SoundExamples(std::shared_ptr<const EncodedSamples> samples, const SoundExampleOptions& options);

  const std::vector<std::string>& class_names() const { return samples_->class_names(); }
  const SoundExampleOptions& options() const { return options_; }

  int64_t size() const override { return samples_->size(); }
  std::vector<Field> fields() const override;
  std::vector<SymbolBindings> buckets() const override;
  int64_t bucket_of(int64_t index) const override;
  int32_t class_of(int64_t index) const override { return samples_->label(index); }
  void read(int64_t index, const RandomView& view, const ExampleRow& row) const override;
  void fill(const ExampleRow& row) const override;
  std::vector<std::string> remarks() const override;

 private:
  int64_t length_of(int64_t index) const;
  int64_t decode(int64_t index, const RandomView& view, std::span<int16_t> target) const;

  std::shared_ptr<const EncodedSamples> samples_;
  SoundExampleOptions options_;
  std::vector<int64_t> steps_;    // of each bucket
  std::vector<uint8_t> buckets_;  // of each sample; empty where there is one
  BrokenRecord broken_;
};

}  // namespace tessera::data
