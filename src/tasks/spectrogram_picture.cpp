#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/compile/executable.h"
#include "tessera/tasks/sound_classification.h"

namespace tessera::tasks {
namespace {

constexpr double kDecibels = 80;

}  // namespace

report::Picture spectrogram_picture(std::span<const int16_t> sound, int64_t hop,
                                    const nn::SpectrogramOptions& options) {
  require(!sound.empty() && std::ssize(sound) % hop == 0, ErrorCode::invalid_argument,
          "a picture of {} samples in steps of {}", sound.size(), hop);
  const int64_t steps = std::ssize(sound) / hop;
  Graph graph;
  Value* samples = graph.add_input(InputRole::input, "sound", {DataType::int16, {1, steps, hop}});
  graph.add_output("spectrogram", nn::log_mel_spectrogram(samples, options));
  const std::shared_ptr<Device> device = Device::has_plugin("cpu") ? Device::cpu() : Device::reference();
  const auto executable = compile(graph, device);
  executable->bind(std::make_shared<Variables>(device));
  Tensor input(DataType::int16, {1, steps, hop});
  std::ranges::copy(sound, input.data<int16_t>().begin());
  const Tensor powers = executable->run({{"sound", input}}).at("spectrogram");
  const auto values = powers.data<float>();
  const double loudest = *std::ranges::max_element(values);
  const double range = kDecibels * std::log(10) / 10;
  report::Picture picture{.height = options.bands, .width = steps};
  picture.pixels.resize(values.size());
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t band = 0; band < options.bands; ++band) {
      const double below = loudest - values[static_cast<size_t>(step * options.bands + band)];
      const auto pixel = static_cast<size_t>((options.bands - 1 - band) * steps + step);
      picture.pixels[pixel] =
          static_cast<uint8_t>(std::lround(255 * std::clamp(1 - below / range, 0.0, 1.0)));
    }
  }
  return picture;
}

}  // namespace tessera::tasks
