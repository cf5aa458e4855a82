// Sound: operators at the head of a graph, one definition for all devices.
//
// Sounds come as [batch, steps, hop]: samples in steps of time, of each of which a spectrogram has one frame.
#pragma once

#include "tessera/nn/context.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

struct SpectrogramOptions {
  int64_t rate = 16000;     // samples per second
  int64_t window = 400;     // samples that a frame looks at, weighted by a periodic Hann window
  int64_t transform = 512;  // of the discrete Fourier transform, the window being in the middle of zeros
  int64_t bands = 64;       // of the mel scale
  double lowest = 0;        // hertz
  double highest = 8000;
  double floor = 1e-10;  // added to a band's power before its logarithm
};
// Throws Error(invalid_argument) naming the option that is out of range.
void check_spectrogram(const SpectrogramOptions& options, int64_t hop);

// sounds: int16 (full scale 32768) or floating [batch, steps, hop]; fp32 [batch, steps, transform / 2 + 1],
// the power of each frequency. Frame t is centered at the first sample of step t, with zeros before the
// beginning and after the end: torch.stft(center=True, pad_mode="constant") without its last frame.
ops::Expression power_spectrogram(Value* sounds, const SpectrogramOptions& options = {});

// fp32 [transform / 2 + 1, bands]: triangles over the mel scale m = 2595 log10(1 + f / 700) (O'Shaughnessy
// 1987), 1 at their tips, as torchaudio's melscale_fbanks(norm=None, mel_scale="htk").
Tensor mel_bands(const SpectrogramOptions& options);

// fp32 [batch, steps, bands]: the natural logarithm of the bands' power.
ops::Expression log_mel_spectrogram(Value* sounds, const SpectrogramOptions& options = {});

// int32 [batch, steps], 1 at frames whose step has samples of the sound. lengths: int32 [batch], in samples.
ops::Expression sounding_frames(Value* lengths, Value* sounds);

// Each band of each sound to a mean of 0 and a deviation of 1 over the frames that sound; 0 elsewhere.
// spectrogram: [batch, steps, bands], frames: as of sounding_frames().
ops::Expression normalize_bands(Value* spectrogram, Value* frames);

// SpecAugment (Park et al. 2019) without its warp: so many stretches of frames and of bands of each sound
// become 0, of a length that is uniform between 0 and the longest.
struct SpectrogramMasks {
  int64_t band_masks = 0;
  int64_t widest_bands = 8;
  int64_t time_masks = 0;
  double longest_share = 0.1;  // of the row's steps
};
// Throws Error(invalid_argument) naming the option that is out of range.
ops::Expression mask_spectrogram(Context& context, Value* spectrogram, const SpectrogramMasks& masks);

}  // namespace tessera::nn
