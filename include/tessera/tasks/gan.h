// A generator of pictures and a discriminator that tells them from real ones, against each other.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/nn/images.h"
#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/phase.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct GanOptions {
  int64_t image_size = 28;  // pixels; a multiple of 4
  int64_t channels = 1;
  int64_t noise = 64;  // numbers that a picture is made of
  int64_t width = 32;  // channels of the layers next to the picture
  nn::ImageInput images = {.mean = {0.5F}, .deviation = {0.5F}};  // to -1..1, as the generator's are
};

// Radford et al. 2016 (arXiv:1511.06434) for small pictures: two strided convolutions on each side.
//   inputs:     images uint8, or as the options say, [batch, size, size, channels]
//   objectives: discriminator (real pictures against those that the generator makes of noise)
//               generator (how seldom the discriminator tells them)
//   served:     samples, pictures in -1..1, as many as the batch has
nn::Task gan(const GanOptions& options = {});

// The discriminator, then the generator on the same batch, each with an optimizer like the one given.
std::vector<train::Phase> gan_phases(const optim::Optimizer& optimizer);

// "mean_distance", the mean absolute difference between the mean picture of the samples and that of the data,
// and "spread", the mean deviation of a pixel among the samples as a share of that in the data, which falls
// to 0 where the generator always makes the same; pictures in 0..1. For the report a grid of samples.
train::EvaluatorMaker gan_evaluator();

// Each sample, drawn in characters.
train::PredictionTextMaker gan_text();

}  // namespace tessera::tasks
