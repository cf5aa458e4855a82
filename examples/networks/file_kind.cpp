// What kind of files these are, by Magika's network: ./file_kind FOLDER FILE...
//
// FOLDER holds model.onnx and config.min.json (https://github.com/google/magika, models/standard_v3_3).
#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>
#include <tessera/onnx.h>
#include <tessera/tessera.h>
namespace ts = tessera;

namespace {

constexpr size_t kBlock = 4096;  // bytes that are looked at, at either end
constexpr size_t kShown = 1024;  // of these, once white space is off
constexpr int32_t kNothing = 256;

// The first bytes of the file and the last ones, as the network was trained with them.
ts::Tensor ends_of(const std::string& path) {
  const std::string text = ts::read_text_file(path);
  const char* const space = " \t\n\v\f\r";
  std::string begin = text.substr(0, kBlock);
  begin = begin.substr(std::min(begin.find_first_not_of(space), begin.size())).substr(0, kShown);
  std::string end = text.substr(text.size() - std::min(text.size(), kBlock));
  end.resize(end.find_last_not_of(space) + 1);
  end = end.substr(end.size() - std::min(end.size(), kShown));
  std::vector<int32_t> bytes(2 * kShown, kNothing);
  const auto number = [](char byte) { return int32_t{static_cast<uint8_t>(byte)}; };
  std::ranges::transform(begin, bytes.begin(), number);
  std::ranges::transform(end, bytes.end() - static_cast<std::ptrdiff_t>(end.size()), number);
  return ts::Tensor::from<int32_t>({1, 2 * kShown}, bytes);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 2 ? argv[1] : "";
  if (folder.empty()) return std::fprintf(stderr, "usage: %s FOLDER FILE...\n", argv[0]), 2;
  const auto kinds =
      nlohmann::json::parse(ts::read_text_file(folder + "/config.min.json"))["target_labels_space"];
  ts::program::Runner network(ts::onnx::load(folder + "/model.onnx"));
  for (int i = 2; i < argc; ++i) {
    const auto outputs = network.run({{"bytes", ends_of(argv[i])}});
    const auto scores = outputs.at("target_label").tensor()->data<float>();
    const auto best = std::ranges::max_element(scores) - scores.begin();
    std::printf("%s: %s (%.1f %%)\n", argv[i], kinds.at(static_cast<size_t>(best)).get<std::string>().c_str(),
                100 * scores[static_cast<size_t>(best)]);
  }
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
