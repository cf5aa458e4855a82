// One class for each sound.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/data/sounds.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/sound.h"
#include "tessera/nn/sound_augmentation.h"
#include "tessera/nn/task.h"
#include "tessera/report/pictures.h"

namespace tessera::tasks {

struct SoundClassificationOptions {
  int64_t classes = 2;
  int64_t hop = 160;  // samples of a step
  nn::SpectrogramOptions spectrogram = {};
  nn::SoundAugmentation augmentation = {};  // in training, as the masks
  nn::SpectrogramMasks masks = {};
  std::vector<int64_t> widths = {64, 96, 128};  // of the stages of residual blocks, each at half the rate
  double dropout = 0.1;                         // before the last layer
  nn::Loss loss = nn::cross_entropy();
};

// Convolutions over time on the bands of a spectrogram, and the mean over the frames that sound.
//   inputs:     sounds int16 [batch, steps, hop], lengths int32 [batch] (data::SoundExamples)
//               labels int32 [batch]; rows with label -1 only fill the batch
//   objective:  loss; metric: accuracy
//   served:     logits fp32 [batch, classes]
//   evaluation: as of image_classification()
// Throws Error(invalid_argument) naming the option that is out of range.
nn::Task sound_classification(const SoundClassificationOptions& options);

// The spectrogram of a sound, low frequencies at the bottom; each pixel's gray is a band's power in decibels
// below the loudest, the last 80 of them. sound: int16 [steps * hop].
report::Picture spectrogram_picture(std::span<const int16_t> sound, int64_t hop,
                                    const nn::SpectrogramOptions& options);

}  // namespace tessera::tasks
