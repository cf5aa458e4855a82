// A report of a run that could have been: five epochs, two synthetic pictures.
#pragma once

#include <cmath>

#include "tessera/base/random.h"
#include "tessera/recipe/recipe.h"
#include "tessera/report/pictures.h"
#include "tessera/report/report.h"
#include "tessera/report/sections.h"

namespace tessera::report {

inline train::RunHistory sample_history() {
  constexpr int64_t kEpochs = 5, kSteps = 469;
  train::RunHistory history;
  const Random random(7);
  uint64_t draw = 0;
  for (int64_t step = 3; step <= kEpochs * kSteps; step += 3) {
    const double done = static_cast<double>(step) / (kEpochs * kSteps);
    const double rate = done < 0.3 ? 0.008 + 0.192 * (1 - std::cos(M_PI * done / 0.3)) / 2
                                   : 0.2 * (1 + std::cos(M_PI * (done - 0.3) / 0.7)) / 2;
    const double loss = 0.19 + 2.1 * std::exp(-done * 40) + 0.35 * std::exp(-done * 3.5);
    history.samples.push_back(
        {.step = step,
         .epoch = done * kEpochs,
         .measures = {{"loss", loss * (1 + 0.09 * random.normal(draw))},
                      {"accuracy", std::min(1.0, 1 - loss * 0.36 + 0.014 * random.normal(draw + 1))}},
         .learning_rate = rate,
         .samples_per_second = 1480 + 35 * random.normal(draw + 2)});
    draw += 3;
  }
  const double test_accuracy[] = {0.8541, 0.8893, 0.9077, 0.9229, 0.9312};
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const double accuracy = test_accuracy[epoch - 1];
    history.epochs.push_back(
        {.epoch = epoch,
         .step = epoch * kSteps,
         .measures = {{"loss", 0.62 / std::sqrt(static_cast<double>(epoch))}, {"accuracy", accuracy - 0.01}},
         .learning_rate = history.samples[static_cast<size_t>(epoch * kSteps / 3 - 1)].learning_rate,
         .samples_per_second = 1475 + 4 * static_cast<double>(epoch),
         .seconds = 40.6});
    history.evaluations.push_back({.name = "test",
                                   .step = epoch * kSteps,
                                   .epoch = static_cast<double>(epoch),
                                   .results = {{"loss", (1 - accuracy) * 2.8}, {"accuracy", accuracy}}});
  }
  return history;
}

inline Picture sample_picture() {
  Picture picture{.pixels = std::vector<uint8_t>(28 * 28), .height = 28, .width = 28};
  for (size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = static_cast<uint8_t>((i % 28) * (i / 28) % 256);
  return picture;
}

inline Report sample_report() {
  Report report;
  report.data = "Fashion-MNIST";
  report.date = "2026-03-14 15:09";
  report.history = sample_history();
  report.summary = {.device = "cpu",
                    .precision = "fp32",
                    .network = "resnet_small",
                    .parameters = 272186,
                    .epochs = 5,
                    .evaluations = {{"test", {{"accuracy", 0.9312}, {"loss", 0.1926}}}},
                    .train_seconds = report.history.train_seconds(),
                    .samples_per_second = 1479,
                    .versions = {{"tessera", "0.1.0"}, {"oneDNN", "3.2.0"}}};
  report.machine = {.processor = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
                    .physical_cores = 1,
                    .logical_cores = 2,
                    .usable_cores = 2,
                    .memory_bytes = uint64_t{23} << 30,
                    .operating_system = "Debian GNU/Linux 12 (bookworm)",
                    .architecture = "x86_64",
                    .compiler = "GCC 12.2.0",
                    .tessera_version = "0.1.0"};
  report.recipe = recipe::to_toml(
      recipe::parse_recipe("data.path = '/usr/share/datasets/fashion-mnist'\noptimizer.nesterov = true\n"
                           "schedule.name = 'one_cycle'",
                           "sample"));
  report.metrics = {{.name = "accuracy", .percent = true, .larger_is_better = true}, {.name = "loss"}};
  report.samples = "images";
  report.sections = {gallery_section("Samples", "As they come.", {sample_picture(), sample_picture()}),
                     remarks_section({"One of them could not be read."})};
  return report;
}

}  // namespace tessera::report
