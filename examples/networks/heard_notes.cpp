// Which notes are heard, by Basic Pitch's network: ./heard_notes MODEL SOUND [SECONDS]
//
// MODEL is nmp.onnx (https://github.com/spotify/basic-pitch). A note goes from its onset as long as its key
// stays likely.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <tessera/onnx.h>
#include <tessera/tessera.h>
namespace ts = tessera;

namespace {

constexpr int64_t kRate = 22050;
constexpr int64_t kSamples = 43844;  // that the network takes
constexpr int64_t kHop = 256;        // of a frame
constexpr int64_t kFrames = 172;
constexpr int64_t kMargin =
    15;  // frames at either end of the network's that know too little of what is beside them
constexpr int64_t kOwn = kFrames - 2 * kMargin;
constexpr int64_t kKeys = 88;  // of a piano, from A0
constexpr float kOnset = 0.5F;
constexpr float kSounding = 0.3F;
constexpr int64_t kShortest = 11;  // frames

std::string name_of(int64_t key) {
  constexpr std::array kNames{"A", "A#", "B", "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#"};
  return kNames[static_cast<size_t>(key) % kNames.size()] + std::to_string((key + 9) / 12);
}

// Frames by keys, one part of the sound after the other.
struct Heard {
  std::vector<float> sounding;
  std::vector<float> onsets;
  int64_t frames() const { return static_cast<int64_t>(sounding.size()) / kKeys; }
};

Heard listen(ts::program::Runner& network, const std::string& path, double most_seconds) {
  const std::vector<std::byte> bytes = ts::read_file(path);
  ts::data::EncodedSound sound(bytes, path);
  const int64_t count = std::min(sound.frames_at(kRate), static_cast<int64_t>(most_seconds * kRate));
  const int64_t parts = count / (kOwn * kHop) + 1;
  ts::Tensor samples(ts::DataType::fp32, {parts * kOwn * kHop + kSamples});
  sound.decode(kRate, 0, samples.data<float>().subspan(kMargin * kHop, static_cast<size_t>(count)));
  Heard heard;
  for (int64_t part = 0; part < parts; ++part) {
    float* own = samples.data<float>().data() + part * kOwn * kHop;
    const auto outputs = network.run(
        {{"serving_default_input_2:0", ts::Tensor::view(ts::DataType::fp32, {1, kSamples, 1}, own)}});
    const auto append = [&](const char* output, std::vector<float>& to) {
      const auto all = outputs.at(output).tensor()->data<float>().subspan(kMargin * kKeys, kOwn * kKeys);
      to.insert(to.end(), all.begin(), all.end());
    };
    append("StatefulPartitionedCall:1", heard.sounding);
    append("StatefulPartitionedCall:2", heard.onsets);
  }
  return heard;
}

// Where a key is struck: the likeliest of the frames beside it.
bool is_onset(const Heard& heard, int64_t frame, int64_t key) {
  const auto at = [&](int64_t f) {
    return f < 0 || f >= heard.frames() ? 0.0F : heard.onsets[static_cast<size_t>(f * kKeys + key)];
  };
  return at(frame) >= kOnset && at(frame) >= at(frame - 1) && at(frame) > at(frame + 1);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4) return std::fprintf(stderr, "usage: %s MODEL SOUND [SECONDS]\n", argv[0]), 2;
  ts::program::Runner network(ts::onnx::load(argv[1]));
  const Heard heard = listen(network, argv[2], argc > 3 ? std::atof(argv[3]) : 1e6);
  const auto seconds = [](int64_t frame) { return static_cast<double>(frame * kHop) / kRate; };
  for (int64_t frame = 0; frame < heard.frames(); ++frame) {
    for (int64_t key = 0; key < kKeys; ++key) {
      if (!is_onset(heard, frame, key)) continue;
      int64_t end = frame + 1;
      while (end < heard.frames() && heard.sounding[static_cast<size_t>(end * kKeys + key)] >= kSounding &&
             !is_onset(heard, end, key))
        ++end;
      if (end - frame >= kShortest)
        std::printf("%6.2f to %6.2f s: %s\n", seconds(frame), seconds(end), name_of(key).c_str());
    }
  }
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
