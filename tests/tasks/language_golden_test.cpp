// A hundred steps of each network of language in each precision, as PyTorch and transformers train them. With
// TESSERA_CURVES, a folder, the losses are kept there: bench/language_curves draws them.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/language_model.h"
#include "tessera/tasks/transformer_xl.h"
#include "tessera/tasks/translation.h"

#include "support/devices.h"
#include "tasks/golden_training.h"

namespace tessera::testing {
namespace {

constexpr size_t kSteps = 100;
constexpr int64_t kRows = 8;
constexpr int64_t kVocabulary = 29;

GoldenTraining decoder(bool llama) {
  constexpr int64_t kTokens = 12;
  models::DecoderConfig network{
      .vocabulary = kVocabulary, .width = 16, .layers = 2, .heads = 2, .inner = 64, .positions = kTokens};
  if (llama) {
    network.form = models::DecoderForm::llama;
    network.heads = 4;
    network.key_heads = 2;
    network.inner = 24;
    network.epsilon = 1e-6;
    network.tied = false;
  }
  GoldenTraining training{
      .golden = read_golden("language_model.json").at(llama ? "llama" : "gpt2"),
      .task = tasks::language_model({.network = network, .tokens = kTokens}),
      .options = {.optimizer = optim::adamw({.learning_rate = 2e-3, .weight_decay = 0.1})},
      .batch = kRows};
  for (size_t step = 0; step < kSteps; ++step) {
    training.fields.push_back(
        {{"tokens", golden_integers(numbered("language.", step), {kRows, kTokens}, kVocabulary)}});
  }
  return training;
}

// Segments that remember those before, which each tenth forgets.
GoldenTraining transformer_xl(bool adaptive) {
  constexpr int64_t kOfSegment = 6;
  constexpr size_t kBegins = 10;
  tasks::TransformerXlOptions options{.network = {.vocabulary = {.tokens = kVocabulary},
                                                  .width = 16,
                                                  .layers = 2,
                                                  .heads = 2,
                                                  .inner = 24,
                                                  .dropout = 0},
                                      .tokens = kOfSegment,
                                      .memory = 9};
  if (adaptive) options.network.vocabulary = {.tokens = kVocabulary, .cutoffs = {8, 17}, .narrowing = 2};
  GoldenTraining training{
      .golden = read_golden("transformer_xl.json").at(adaptive ? "adaptive" : "plain"),
      .task = tasks::transformer_xl(options),
      .options = {.optimizer = optim::adam({.learning_rate = 2e-3}), .sizes = {{"batch", kRows}}},
      .batch = kRows};
  for (size_t step = 0; step < kSteps; ++step) {
    const std::string name = numbered("transformer_xl.", step);
    training.fields.push_back(
        {{"tokens", golden_integers(name + ".tokens", {kRows, kOfSegment}, kVocabulary)},
         {"labels", golden_integers(name + ".labels", {kRows, kOfSegment}, kVocabulary)},
         {"begins", Tensor::full(DataType::int32, {kRows}, step % kBegins == 0 ? 1 : 0)}});
  }
  return training;
}

// A step's rows of both sides: what is given without its last token, what is said without its first.
Feeds pairs_of(size_t step) {
  constexpr int64_t kWithBegin = 9;
  constexpr int64_t kPlaces = kWithBegin - 1;
  const std::string name = numbered("translation.", step);
  const auto lengths = [&](const char* field) {
    Tensor result = golden_integers(name + field, {kRows}, kWithBegin - 2);
    for (int32_t& length : result.data<int32_t>()) length += 2;
    return result;
  };
  const Tensor whole = golden_integers(name + ".target", {kRows, kWithBegin}, kVocabulary);
  Tensor target(DataType::int32, {kRows, kPlaces}), labels(DataType::int32, {kRows, kPlaces});
  for (int64_t i = 0; i < target.size(); ++i) {
    target.set(i, whole.at(i / kPlaces * kWithBegin + i % kPlaces));
    labels.set(i, whole.at(i / kPlaces * kWithBegin + i % kPlaces + 1));
  }
  return {{"source", golden_integers(name + ".source", {kRows, kPlaces}, kVocabulary)},
          {"source_lengths", lengths(".source_lengths")},
          {"target", target},
          {"labels", labels},
          {"target_lengths", lengths(".target_lengths")}};
}

// Label smoothing is fairseq's.
GoldenTraining translation(bool pre_norm) {
  GoldenTraining training{
      .golden = read_golden("translation.json").at(pre_norm ? "pre_norm" : "post_norm"),
      .task = tasks::translation({.network = {.vocabulary = kVocabulary,
                                              .width = 16,
                                              .encoder_layers = 2,
                                              .decoder_layers = 1,
                                              .heads = 2,
                                              .inner = 24,
                                              .dropout = 0,
                                              .pre_norm = pre_norm}}),
      .options = {.optimizer = optim::adam({.learning_rate = 2e-3, .beta2 = 0.98, .epsilon = 1e-9})},
      .batch = kRows,
      .sizes = {{"tokens", 8}}};
  for (size_t step = 0; step < kSteps; ++step) training.fields.push_back(pairs_of(step));
  return training;
}

GoldenTraining bert() {
  constexpr int64_t kTokens = 10;
  constexpr int64_t kWords = 37;
  GoldenTraining training{
      .golden = read_golden("bert_pretraining.json"),
      .task = tasks::bert_pretraining({.network = {.vocabulary = kWords,
                                                   .width = 16,
                                                   .layers = 2,
                                                   .heads = 2,
                                                   .inner = 24,
                                                   .positions = 12,
                                                   .dropout = 0},
                                       .tokens = kTokens,
                                       .mask = 4,
                                       .kept = {2, 3},
                                       .masked = 0.25}),
      .options = {.optimizer = optim::adamw({.learning_rate = 2e-3, .weight_decay = 0.1})},
      .batch = kRows};
  for (size_t step = 0; step < kSteps; ++step) {
    const std::string name = numbered("bert.", step);
    Tensor lengths = golden_integers(name + ".lengths", {kRows}, kTokens - 2);
    for (int32_t& length : lengths.data<int32_t>()) length += 3;
    training.fields.push_back({{"tokens", golden_integers(name, {kRows, kTokens}, kWords)},
                               {"segments", golden_integers(name + ".segments", {kRows, kTokens}, 2)},
                               {"lengths", lengths},
                               {"next_sentence", golden_integers(name + ".next", {kRows}, 2)}});
  }
  return training;
}

struct Network {
  const char* name;
  std::function<GoldenTraining()> make;
};

std::vector<Network> networks() {
  return {{"bert", bert},
          {"gpt2", [] { return decoder(false); }},
          {"llama", [] { return decoder(true); }},
          {"transformer", [] { return translation(false); }},
          {"transformer_pre_norm", [] { return translation(true); }},
          {"transformer_xl", [] { return transformer_xl(false); }},
          {"transformer_xl_adaptive", [] { return transformer_xl(true); }}};
}

double mean_square_of_difference(const std::vector<double>& left, const std::vector<double>& right) {
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) sum += (left[i] - right[i]) * (left[i] - right[i]);
  return sum / static_cast<double>(left.size());
}

// Mixed precision rounds elsewhere than PyTorch's, but as much: by the root of the mean of squares losses are
// no more than four times as far from float64. Where relu or a division by a small root parts two curves is
// chance.
void expect_halves(const nlohmann::json& golden, Precision precision, const std::vector<double>& losses) {
  constexpr double kMost = 4;
  const auto exact = golden.at("loss").get<std::vector<double>>();
  const auto peer = golden.at("halves").at(std::string(to_string(precision))).get<std::vector<double>>();
  ASSERT_EQ(exact.size(), kSteps);
  ASSERT_EQ(peer.size(), kSteps);
  ASSERT_EQ(losses.size(), kSteps);
  EXPECT_LE(std::sqrt(mean_square_of_difference(losses, exact)),
            kMost * std::sqrt(mean_square_of_difference(peer, exact)));
}

void keep(const std::string& network, Precision precision, const Device& device, const nlohmann::json& golden,
          const std::vector<double>& losses) {
  const char* folder = std::getenv("TESSERA_CURVES");
  if (folder == nullptr) return;
  const std::string name(to_string(precision));
  const nlohmann::json& peer =
      precision == Precision::fp32 ? golden.at("loss") : golden.at("halves").at(name);
  const nlohmann::json kept{{"network", network},
                            {"precision", name},
                            {"device", device.description().name},
                            {"tessera", losses},
                            {"torch", peer}};
  const std::string path = fmt::format("{}/{}-{}-{}.json", folder, device.description().name, network, name);
  std::ofstream(path) << kept << "\n";
}

class LanguageCurves : public ::testing::TestWithParam<std::tuple<Network, Precision>> {};

TEST_P(LanguageCurves, ArePyTorchsOnEachDevice) {
  const auto& [network, precision] = GetParam();
  GoldenTraining training = network.make();
  training.options.precision = precision;
  for (const auto& device : available_devices()) {
    SCOPED_TRACE(device->description().name);
    training.options.device = device;
    const Losses losses = losses_of(training);
    keep(network.name, precision, *device, training.golden, losses.at("loss"));
    if (precision == Precision::fp32) {
      // Sums in another order; Adam's first steps divide by the roots of small gradients.
      expect_golden(training, losses, 20);
    } else {
      expect_halves(training.golden, precision, losses.at("loss"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, LanguageCurves,
                         ::testing::Combine(::testing::ValuesIn(networks()),
                                            ::testing::Values(Precision::fp32, Precision::bf16,
                                                              Precision::fp16)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

}  // namespace
}  // namespace tessera::testing
