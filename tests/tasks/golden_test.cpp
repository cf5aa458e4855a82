// The losses of each task's first twenty steps, as PyTorch has them: tests/golden.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/models/formula.h"
#include "tessera/tasks/bert_pretraining.h"
#include "tessera/tasks/click_through.h"
#include "tessera/tasks/gan.h"
#include "tessera/tasks/language_model.h"
#include "tessera/tasks/masked_language_model.h"
#include "tessera/tasks/transformer_xl.h"
#include "tessera/tasks/translation.h"
#include "tessera/train/trainer.h"

#include "test_folder.h"
#include "train/list_source.h"

namespace tessera::testing {
namespace {

namespace formula = models::formula;

constexpr size_t kSteps = 20;

// With the weights of the formula.
train::Trainer make_trainer(const nn::Task& task, train::TrainerOptions options,
                            const SymbolBindings& sizes) {
  options.precision = Precision::fp32;
  options.device = Device::cpu();
  train::Trainer trainer(task, options);
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  task.training(context, nn::add_inputs(graph, task, sizes));
  const std::map<std::string, Tensor> weights = formula::weights(context.variables());
  Checkpoint state = trainer.training_state();
  for (const nn::Variable& variable : context.variables()) {
    if (variable.role != InputRole::parameter) continue;
    state.tensors.at(variable.name) = nn::to_file_layout(variable, weights.at(variable.name));
  }
  trainer.restore(state, "formula");
  return trainer;
}

nlohmann::json read_golden(const std::string& file) {
  std::ifstream stream(std::string(TESSERA_TEST_FOLDER) + "/../golden/" + file);
  return nlohmann::json::parse(stream);
}

// Trains on the batches, whose losses are golden. `roundings`: how many times as far from float64 as
// PyTorch's own float32 ours may be.
void expect_curves(const nlohmann::json& golden, const nn::Task& task, const train::TrainerOptions& options,
                   const std::vector<Feeds>& fields, int64_t batch, double roundings,
                   SymbolBindings sizes = {}) {
  sizes["batch"] = batch;
  std::vector<data::Batch> batches;
  for (const Feeds& feeds : fields) batches.push_back({.fields = feeds, .sizes = sizes, .samples = batch});
  train::Trainer trainer = make_trainer(task, options, sizes);
  std::map<std::string, std::vector<double>> losses;
  train::FitOptions fit;
  fit.on_step = [&](const train::StepEvent& event) {
    for (const auto& [name, mean] : event.measures) losses[name].push_back(mean);
  };
  trainer.fit(ListSource(task.inputs, batches), fit);
  size_t compared = 0;
  for (const auto& [name, curve] : golden.items()) {
    if (!curve.is_array()) continue;
    ASSERT_EQ(curve.size(), kSteps);
    ASSERT_EQ(losses.at(name).size(), kSteps);
    ++compared;
    for (size_t step = 0; step < kSteps; ++step) {
      const double bound = roundings * golden.at("float32_deviation").get<double>();
      EXPECT_NEAR(losses.at(name)[step], curve[step].get<double>(), bound) << name << " " << step;
    }
  }
  EXPECT_GE(compared, 1U);
}

std::string numbered(const char* name, size_t step) {
  return name + std::to_string(step);
}

TEST(Golden, GanTrainsAsInPyTorch) {
  constexpr int64_t kSize = 12;
  constexpr int64_t kBatch = 8;
  std::vector<Feeds> fields;
  for (size_t step = 0; step < kSteps; ++step)
    fields.push_back({{"images", formula::images(numbered("gan.", step), {kBatch, kSize, kSize, 1})}});
  // Ours has sums in another order, and noise and logarithms that are off by some units in the last place.
  expect_curves(read_golden("gan.json"),
                tasks::gan({.image_size = kSize, .noise = 8, .width = 4, .images = {.type = DataType::fp32}}),
                {.phases = tasks::gan_phases(optim::adam({.learning_rate = 2e-3, .beta1 = 0.5}))}, fields,
                kBatch, 40);
}

constexpr int64_t kRows = 8;
constexpr int64_t kTokens = 12;
constexpr int64_t kVocabulary = 29;

// Of rows of tokens. Sums in another order; Adam's first steps divide by the roots of small gradients.
void expect_curves_of_tokens(const nlohmann::json& golden, const char* prefix, const nn::Task& task) {
  std::vector<Feeds> fields;
  for (size_t step = 0; step < kSteps; ++step) {
    const Tensor tokens = formula::labels(numbered(prefix, step), kRows * kTokens, kVocabulary);
    fields.push_back({{"tokens", tokens.reshape({kRows, kTokens})}});
  }
  expect_curves(golden, task, {.optimizer = optim::adamw({.learning_rate = 2e-3, .weight_decay = 0.1})},
                fields, kRows, 20);
}

TEST(Golden, MaskedLanguageModelTrainsAsInPyTorch) {
  expect_curves_of_tokens(read_golden("masked_language_model.json"), "masked.",
                          tasks::masked_language_model({.tokens = kTokens,
                                                        .vocabulary = kVocabulary,
                                                        .width = 16,
                                                        .heads = 2,
                                                        .layers = 2,
                                                        .masked = 0.25}));
}

TEST(Golden, LanguageModelsTrainAsInTransformers) {
  const nlohmann::json golden = read_golden("language_model.json");
  models::DecoderConfig network{
      .vocabulary = kVocabulary, .width = 16, .layers = 2, .heads = 2, .inner = 64, .positions = kTokens};
  expect_curves_of_tokens(golden.at("gpt2"), "language.",
                          tasks::language_model({.network = network, .tokens = kTokens}));
  network.form = models::DecoderForm::llama;
  network.heads = 4;
  network.key_heads = 2;
  network.inner = 24;
  network.epsilon = 1e-6;
  network.tied = false;
  expect_curves_of_tokens(golden.at("llama"), "language.",
                          tasks::language_model({.network = network, .tokens = kTokens}));
}

// Segments that remember those before, which the eleventh forgets.
TEST(Golden, TransformerXlTrainsAsInPyTorch) {
  constexpr int64_t kOfSegment = 6;
  constexpr size_t kBegins = 10;
  std::vector<Feeds> fields;
  for (size_t step = 0; step < kSteps; ++step) {
    const auto numbers = [&](const char* field) {
      return formula::labels(numbered("transformer_xl.", step) + field, kRows * kOfSegment, kVocabulary)
          .reshape({kRows, kOfSegment});
    };
    fields.push_back({{"tokens", numbers(".tokens")},
                      {"labels", numbers(".labels")},
                      {"begins", Tensor::full(DataType::int32, {kRows}, step % kBegins == 0 ? 1 : 0)}});
  }
  const nlohmann::json golden = read_golden("transformer_xl.json");
  for (const bool adaptive : {false, true}) {
    tasks::TransformerXlOptions options{.network = {.vocabulary = {.tokens = kVocabulary},
                                                    .width = 16,
                                                    .layers = 2,
                                                    .heads = 2,
                                                    .inner = 24,
                                                    .dropout = 0},
                                        .tokens = kOfSegment,
                                        .memory = 9};
    if (adaptive) options.network.vocabulary = {.tokens = kVocabulary, .cutoffs = {8, 17}, .narrowing = 2};
    // Sums in another order; Adam's first steps divide by the roots of small gradients.
    expect_curves(golden.at(adaptive ? "adaptive" : "plain"), tasks::transformer_xl(options),
                  {.optimizer = optim::adam({.learning_rate = 2e-3}), .sizes = {{"batch", kRows}}}, fields,
                  kRows, 20);
  }
}

// Label smoothing is fairseq's.
TEST(Golden, TranslationTrainsAsInPyTorch) {
  constexpr int64_t kBatch = 8;
  constexpr int64_t kWithBegin = 9;
  constexpr int64_t kPlaces = kWithBegin - 1;
  std::vector<Feeds> fields;
  for (size_t step = 0; step < kSteps; ++step) {
    const std::string name = numbered("translation.", step);
    const auto numbers = [&](const char* field, const Shape& shape, int64_t classes) {
      return formula::labels(name + field, element_count(shape), classes).reshape(shape);
    };
    const auto lengths = [&](const char* field) {
      Tensor result = numbers(field, {kBatch}, kWithBegin - 2);
      for (int32_t& length : result.data<int32_t>()) length += 2;
      return result;
    };
    // A row of both sides: what is given without its last token, what is said without its first.
    const Tensor whole = numbers(".target", {kBatch, kWithBegin}, kVocabulary);
    Tensor target(DataType::int32, {kBatch, kPlaces}), labels(DataType::int32, {kBatch, kPlaces});
    for (int64_t i = 0; i < target.size(); ++i) {
      target.set(i, whole.at(i / kPlaces * kWithBegin + i % kPlaces));
      labels.set(i, whole.at(i / kPlaces * kWithBegin + i % kPlaces + 1));
    }
    fields.push_back({{"source", numbers(".source", {kBatch, kPlaces}, kVocabulary)},
                      {"source_lengths", lengths(".source_lengths")},
                      {"target", target},
                      {"labels", labels},
                      {"target_lengths", lengths(".target_lengths")}});
  }
  const nlohmann::json golden = read_golden("translation.json");
  for (const bool pre_norm : {false, true}) {
    const nn::Task task = tasks::translation({.network = {.vocabulary = kVocabulary,
                                                          .width = 16,
                                                          .encoder_layers = 2,
                                                          .decoder_layers = 1,
                                                          .heads = 2,
                                                          .inner = 24,
                                                          .dropout = 0,
                                                          .pre_norm = pre_norm}});
    expect_curves(golden.at(pre_norm ? "pre_norm" : "post_norm"), task,
                  {.optimizer = optim::adam({.learning_rate = 2e-3, .beta2 = 0.98, .epsilon = 1e-9})}, fields,
                  kBatch, 20, {{"tokens", kPlaces}});
  }
}

TEST(Golden, BertPretrainsAsInTransformers) {
  constexpr int64_t kBatch = 8;
  constexpr int64_t kTokens = 10;
  constexpr int64_t kVocabulary = 37;
  std::vector<Feeds> fields;
  for (size_t step = 0; step < kSteps; ++step) {
    const std::string name = numbered("bert.", step);
    const auto numbers = [&](const char* field, const Shape& shape, int64_t classes) {
      return formula::labels(name + field, element_count(shape), classes).reshape(shape);
    };
    Tensor lengths = numbers(".lengths", {kBatch}, kTokens - 2);
    for (int32_t& length : lengths.data<int32_t>()) length += 3;
    fields.push_back({{"tokens", numbers("", {kBatch, kTokens}, kVocabulary)},
                      {"segments", numbers(".segments", {kBatch, kTokens}, 2)},
                      {"lengths", lengths},
                      {"next_sentence", numbers(".next", {kBatch}, 2)}});
  }
  const nn::Task task = tasks::bert_pretraining({.network = {.vocabulary = kVocabulary,
                                                             .width = 16,
                                                             .layers = 2,
                                                             .heads = 2,
                                                             .inner = 24,
                                                             .positions = 12,
                                                             .dropout = 0},
                                                 .tokens = kTokens,
                                                 .mask = 4,
                                                 .kept = {2, 3},
                                                 .masked = 0.25});
  // Sums in another order; Adam's first steps divide by the roots of small gradients.
  expect_curves(read_golden("bert_pretraining.json"), task,
                {.optimizer = optim::adamw({.learning_rate = 2e-3, .weight_decay = 0.1})}, fields, kBatch,
                20);
}

// The tables' rows as torch.optim.SparseAdam updates them.
TEST(Golden, ClickThroughTrainsAsInPyTorch) {
  constexpr int64_t kBatch = 16;
  constexpr int64_t kNumbers = 4;
  const std::vector<int64_t> entries{7, 40, 3};
  std::vector<Feeds> fields;
  for (size_t step = 0; step < kSteps; ++step) {
    const std::string name = numbered("click.", step);
    Tensor categories(DataType::int32, {kBatch, std::ssize(entries)});
    Tensor numbers(DataType::fp32, {kBatch, kNumbers});
    Tensor labels(DataType::fp32, {kBatch});
    for (int64_t row = 0; row < kBatch; ++row) {
      const auto place = static_cast<uint64_t>(row);
      for (int64_t table = 0; table < std::ssize(entries); ++table) {
        const std::string column = name + "." + std::to_string(table);
        const int64_t code = formula::label(column, place, entries[static_cast<size_t>(table)]);
        categories.set(row * std::ssize(entries) + table, static_cast<double>(code));
      }
      for (int64_t i = 0; i < kNumbers; ++i) {
        const float number = formula::uniform(name + ".numbers", place * kNumbers + static_cast<uint64_t>(i));
        numbers.set(row * kNumbers + i, number);
      }
      labels.set(row, static_cast<double>(formula::label(name + ".labels", place, 2)));
    }
    fields.push_back({{"categories", categories}, {"numbers", numbers}, {"labels", labels}});
  }
  // Sums in another order.
  expect_curves(
      read_golden("click_through.json"),
      tasks::click_through({.entries = entries, .numbers = kNumbers, .width = 8, .hidden = {12, 6}}),
      {.optimizer = optim::adam({.learning_rate = 1e-2, .epsilon = 1e-12})}, fields, kBatch, 20);
}

}  // namespace
}  // namespace tessera::testing
