#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "tessera/train/run.h"

#include "cli/run_options.h"

namespace tessera::cli {
namespace {

// Draws a picture in characters: two pixels by two become one character, the brighter the denser.
std::vector<std::string> draw(const data::Dataset& dataset, int64_t index) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const Shape& shape = dataset.image_shape();
  std::vector<float> pixels(static_cast<size_t>(element_count(shape)));
  int32_t label = 0;
  dataset.read(index, pixels, label);
  const auto at = [&](int64_t row, int64_t column) {  // the mean over channels
    float sum = 0;
    for (int64_t c = 0; c < shape[2]; ++c)
      sum += pixels[static_cast<size_t>((row * shape[1] + column) * shape[2] + c)];
    return sum / static_cast<float>(shape[2]);
  };
  std::vector<std::string> lines;
  for (int64_t row = 0; row + 1 < shape[0]; row += 2) {
    std::string line;
    for (int64_t column = 0; column < shape[1]; ++column) {
      const float brightness = std::clamp((at(row, column) + at(row + 1, column)) / 2, 0.0F, 1.0F);
      line += kShades[static_cast<size_t>(std::lround(brightness * static_cast<float>(kShades.size() - 1)))];
    }
    lines.push_back(line);
  }
  return lines;
}

void run_predict(const RunArguments& arguments, int64_t count) {
  std::vector<std::string> overrides = overrides_of(arguments);
  overrides.push_back(fmt::format("data.test_images={}", count));
  train::FinishedRun run = train::open_run(arguments.folder, overrides);
  const data::Loader loader = train::make_evaluation_loader(run.recipe, data::Split::test);
  const data::Dataset& dataset = loader.dataset();
  int64_t correct = 0;
  const train::Evaluation evaluation = run.trainer.evaluate(loader);
  for (const train::Prediction& prediction : evaluation.predictions) {
    const auto name = [&](int32_t label) { return data::class_name(dataset.class_names(), label); };
    const bool right = prediction.predicted == prediction.label;
    correct += right ? 1 : 0;
    for (const std::string& line : draw(dataset, prediction.index)) fmt::print("  {}\n", line);
    fmt::print("image {}: {} ({:.1f} %){}\n\n", prediction.index, name(prediction.predicted),
               100 * prediction.confidence,
               right ? "" : fmt::format(", wrong: it is {}", name(prediction.label)));
  }
  fmt::print("{} of {} right\n", correct, evaluation.predictions.size());
}

}  // namespace

void add_predict(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("predict", "Classify test images with a trained network and show them");
  command->footer("Example: tessera predict runs/quickstart --count 10");
  auto arguments = std::make_shared<RunArguments>();
  auto count = std::make_shared<int64_t>(10);
  add_run_arguments(*command, *arguments);
  command->add_option("--count", *count, "How many images")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->callback([arguments, count] { run_predict(*arguments, *count); });
}

}  // namespace tessera::cli
