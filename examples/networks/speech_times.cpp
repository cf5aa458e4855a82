// When somebody speaks, by Silero's network: ./speech_times MODEL SOUND
//
// MODEL is silero_vad.onnx (https://github.com/snakers4/silero-vad): a recurrent network, whose state is
// given back to it.
#include <algorithm>
#include <cstdio>

#include <tessera/onnx.h>
#include <tessera/tessera.h>
namespace ts = tessera;

namespace {

constexpr int64_t kRate = 16000;
constexpr int64_t kStep = 512;     // samples that each call judges
constexpr int64_t kContext = 64;   // and those before them
constexpr double kSpeech = 0.5;    // speech begins at this likelihood
constexpr double kSilence = 0.35;  // and ends below this one, if it stays there for so many steps
constexpr int64_t kPause = 4;

// As long as whole steps, after a context of silence.
ts::Tensor samples_of(const std::string& path) {
  const std::vector<std::byte> bytes = ts::read_file(path);
  ts::data::EncodedSound sound(bytes, path);
  const int64_t count = sound.frames_at(kRate);
  ts::Tensor samples(ts::DataType::fp32, {kContext + (count + kStep - 1) / kStep * kStep});
  sound.decode(kRate, 0, samples.data<float>().subspan(kContext, static_cast<size_t>(count)));
  return samples;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL SOUND\n", argv[0]), 2;
  ts::program::Runner network(ts::onnx::load(argv[1]));
  ts::Tensor samples = samples_of(argv[2]);
  ts::program::Item state = ts::Tensor(ts::DataType::fp32, {2, 1, 128});
  const ts::Tensor rate = ts::Tensor::scalar(ts::DataType::int64, kRate);
  const int64_t steps = (samples.size() - kContext) / kStep;
  const auto seconds = [](int64_t step) { return static_cast<double>(step * kStep) / kRate; };
  int64_t began = -1;
  int64_t spoken = -1;  // the last step with speech
  for (int64_t step = 0; step <= steps; ++step) {
    double likelihood = 0;
    if (step < steps) {
      float* part = samples.data<float>().data() + step * kStep;
      auto outputs =
          network.run({{"input", ts::Tensor::view(ts::DataType::fp32, {1, kContext + kStep}, part)},
                       {"state", state},
                       {"sr", rate}});
      likelihood = outputs.at("output").tensor()->at(0);
      state = outputs.at("stateN");
    }
    if (likelihood >= kSpeech && began < 0) began = step;
    if (likelihood >= kSilence && began >= 0) spoken = step;
    if (began >= 0 && (step == steps || step - spoken > kPause)) {
      std::printf("speech from %.2f to %.2f s\n", seconds(began), seconds(spoken + 1));
      began = -1;
    }
  }
  std::printf("of %.2f s\n", seconds(steps));
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
