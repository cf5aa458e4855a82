// What training does to sounds before their spectrogram: operators at the head of a graph, one definition for
// all devices.
//
// Sounds come as [batch, steps, hop], int16 (full scale 32768) or floating, and leave as fp32 of full
// scale 1.
#pragma once

#include <vector>

#include "tessera/nn/context.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

// A sound at `to` samples a second of one at `from`, or played `from` / `to` times as fast: a sinc in a Hann
// window of six zeros on each side, cut off at 0.99 of the lower rate's half, as the defaults of
// torchaudio.functional.resample (Smith, "Digital audio resampling", 2002). fp32 [batch, steps, hop]: the row
// stays as long as it is, zeros follow a sound that became shorter, and of one that became longer the end is
// left out. Throws Error(invalid_argument) where a rate is not from 1 to 1000 after both are divided by what
// divides both.
ops::Expression resample(Value* sounds, int64_t from, int64_t to);
// Samples of a resampled sound, rounded up, and at most as many as a row has. lengths: int32 [batch], sounds:
// as of resample().
ops::Expression resampled_lengths(Value* lengths, Value* sounds, int64_t from, int64_t to);

// fp32 [batch, steps, hop]: the sound and so much noise that their energies over the sound's samples have the
// ratio, as torchaudio.functional.add_noise; nothing after the sound's end, and nothing to silence. noise: as
// the sounds, of any loudness; decibels: [batch]; lengths: int32 [batch], in samples.
ops::Expression add_noise(Value* sounds, Value* noise, Value* decibels, Value* lengths);

struct SoundAugmentation {
  // Of which each sound takes one, as likely as another; in hundredths (Ko et al., "Audio augmentation for
  // speech recognition", 2015).
  std::vector<double> speeds = {1};
  double noise = 0;  // the probability of Gaussian noise
  // Of the sound to its noise, uniform between the two.
  double least_decibels = 10;
  double most_decibels = 40;
};

// Throws Error(invalid_argument) naming the option that is out of range.
void check_sound_augmentation(const SoundAugmentation& options);

struct AugmentedSounds {
  Value* sounds;   // fp32 [batch, steps, hop] where anything is done to them
  Value* lengths;  // int32 [batch]
};
// Throws as check_sound_augmentation().
AugmentedSounds augment_sounds(Context& context, Value* sounds, Value* lengths,
                               const SoundAugmentation& options);

}  // namespace tessera::nn
