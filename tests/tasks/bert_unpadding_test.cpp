// Pretraining of BERT without padding: rows of a batch as one list of their tokens.
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/token_rows.h"
#include "tessera/tasks/bert_pretraining.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/token_documents.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

constexpr int64_t kTokens = 24;
constexpr int64_t kVocabulary = 30;
const data::TokenSetHeader kHeader{
    .vocabulary = kVocabulary, .begin = 0, .separator = 1, .padding = 2, .mask = 3};

std::shared_ptr<const data::TokenSet> short_texts(const TemporaryFolder& folder) {
  std::vector<int> lengths;
  for (int text = 0; text < 60; ++text) lengths.push_back(2 + text * 7 % 20);
  return token_documents(folder, lengths, kHeader,
                         [](int document, int i) { return 4 + (document + i) % (kVocabulary - 4); });
}

std::shared_ptr<const data::TokenRows> even_rows(const std::shared_ptr<const data::TokenSet>& set,
                                                 int64_t batch) {
  return std::make_shared<data::TokenRows>(set, data::TokenRowOptions{.kind = data::TokenRowKind::pairs,
                                                                      .length = kTokens,
                                                                      .even_batches = true,
                                                                      .batch_size = batch,
                                                                      .seed = 3});
}

// `list`: its places; 0: in rows.
tasks::BertPretrainingOptions small_options(int64_t list, double dropout = 0, double attention_dropout = 0) {
  return {.network = {.vocabulary = kVocabulary,
                      .width = 16,
                      .layers = 2,
                      .heads = 2,
                      .inner = 24,
                      .positions = kTokens,
                      .dropout = dropout,
                      .attention_dropout = attention_dropout,
                      .deviation = 0.1},
          .tokens = kTokens,
          .list = list,
          .mask = 3,
          .kept = {0, 1}};
}

// In one process; the weights of attention that are dropped are those of rows. Few gaps are one of each text.
TEST(BertUnpadding, TrainsAsRowsDo) {
  const TemporaryFolder folder;
  const auto rows = even_rows(short_texts(folder), kRankBatch);
  ASSERT_LT(rows->most_tokens(), kRankBatch * kTokens * 3 / 4) << "there is padding";
  const SourceMaker source = [&](int64_t) { return rows; };
  for (const double masked : {0.01, 0.15, 0.9}) {
    SCOPED_TRACE(masked);
    const auto trained = [&](int64_t list) {
      tasks::BertPretrainingOptions options = small_options(list, 0, 0.2);
      options.masked = masked;
      return train_on(
          1, [&] { return tasks::bert_pretraining(options); }, {}, nullptr, source);
    };
    const std::vector<Trained> padded = trained(0);
    const std::vector<Trained> unpadded = trained(rows->most_tokens());
    expect_close(padded.front().state, unpadded.front().state, 2e-4);
    for (const char* measure :
         {"loss", "masked", "next_sentence", "masked_accuracy", "next_sentence_accuracy"}) {
      const auto of = [&](const std::vector<Trained>& run) {
        return run.front().result.history.epochs.back().measures.at(measure);
      };
      EXPECT_NEAR(of(padded), of(unpadded), 2e-4) << measure;
    }
  }
}

// Gaps of short texts are fewer than a full row has, and the product with the vocabulary is the largest.
TEST(BertUnpadding, DecodesAboutAsManyPlacesAsThereAreGaps) {
  constexpr int64_t kRows = 20;
  tasks::BertPretrainingOptions options = small_options(kRows * kTokens / 2);
  options.masked = 0.5;
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  const nn::Task task = tasks::bert_pretraining(options);
  task.training(context, nn::add_inputs(graph, task, {{"batch", kRows}}));
  for (const Use& use : graph.find_input("bert.embeddings.word_embeddings.weight")->uses()) {
    if (use.node->operator_name() != "matmul") continue;
    EXPECT_EQ(use.node->output()->shape(), (SymbolicShape{kRows * kTokens / 4 + kRows, kVocabulary}));
  }
}

// A gap for each text: the loss is a sum of two means, and each rank has the means of its own.
TEST(BertUnpadding, TrainsOnSeveralRanksAsOnOne) {
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  const SourceMaker source = [&](int64_t batch) { return even_rows(set, batch); };
  const auto trained = [&](int64_t ranks) {
    tasks::BertPretrainingOptions options =
        small_options(even_rows(set, kRankBatch / ranks)->most_tokens(), 0, 0.2);
    options.masked = 0.01;
    return train_on(
        ranks, [&] { return tasks::bert_pretraining(options); }, {}, nullptr, source);
  };
  const Checkpoint alone = trained(1).front().state;
  for (const int64_t ranks : {2, 4}) {
    const std::vector<Trained> together = trained(ranks);
    expect_close(alone, together.front().state, 2e-4);
    EXPECT_TRUE(different_tensors(together.front().state.tensors, together.back().state.tensors).empty());
  }
}

TEST(BertUnpadding, ResumesToTheSameBits) {
  const TemporaryFolder folder;
  const auto rows = even_rows(short_texts(folder), kRankBatch);
  const auto make = [&] {
    return train::Trainer(tasks::bert_pretraining(small_options(rows->most_tokens(), 0.1, 0.1)),
                          {.optimizer = optim::lamb({.learning_rate = 1e-2}), .device = Device::cpu()});
  };
  expect_same_bits_when_resumed(make, *rows, 10);  // of 7 batches in each of two epochs
}

// What is measured and served takes rows of any lengths, full ones, too.
TEST(BertUnpadding, MeasuresAndServesRows) {
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  const train::TrainerOptions options{.optimizer = optim::sgd({}), .device = Device::cpu()};
  train::Trainer list(tasks::bert_pretraining(small_options(kTokens)), options);
  train::Trainer rows(tasks::bert_pretraining(small_options(0)), options);
  const data::TokenRows all(set, {.kind = data::TokenRowKind::pairs,
                                  .length = kTokens,
                                  .batch_size = 16,
                                  .shuffle = false,
                                  .drop_last = false});
  const auto measured = [&](train::Trainer& trainer) {
    const auto evaluator = tasks::bert_pretraining_evaluator()();
    EXPECT_EQ(trainer.evaluate(all, *evaluator), all.size());
    return evaluator->results();
  };
  EXPECT_EQ(measured(list), measured(rows));
  const Feeds served = list.predict(all);
  for (const auto& [name, tensor] : rows.predict(all)) EXPECT_TRUE(tensor.identical(served.at(name))) << name;
}

TEST(BertUnpadding, DoesNotLearnFromWhatTheListHasNoRoomFor) {
  const TemporaryFolder folder;
  const auto rows = even_rows(short_texts(folder), kRankBatch);
  int64_t fullest = 0;
  const auto stream = rows->open({});
  while (const auto batch = stream->next()) {
    int64_t tokens = 0;
    for (const double length : batch->fields.at("lengths").to_doubles())
      tokens += static_cast<int64_t>(length);
    fullest = std::max(fullest, tokens);
  }
  const auto trains_with = [&](int64_t list) {
    train::Trainer trainer(tasks::bert_pretraining(small_options(list)),
                           {.optimizer = optim::sgd({}), .device = Device::cpu()});
    trainer.fit(*rows, {.epochs = 1});
  };
  trains_with(fullest);
  EXPECT_ERROR(trains_with(fullest - 1), ErrorCode::not_finite, "loss");
}

TEST(BertUnpadding, IsOfOnePairARow) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(tasks::bert_pretraining({.pairs = 2, .list = 64}), code, "list of 64", "2 pairs");
  EXPECT_ERROR(tasks::bert_pretraining({.list = -1}), code, "list of -1");
}

}  // namespace
}  // namespace tessera::testing
