// Several ranks train as one does with the whole batch.
#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/nn/loss.h"

#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

// Sums over ranks are made element by element.
TEST(Ranks, TrainToTheSameBitsWhateverTheBuckets) {
  const auto trained = [](int64_t bucket_bytes, const optim::Optimizer& optimizer) {
    return state_of(
        2, [] { return tiny_resnet(); },
        [&](train::TrainerOptions& options, train::FitOptions&) {
          options.bucket_bytes = bucket_bytes;
          options.optimizer = optimizer;
        });
  };
  for (const optim::Optimizer& optimizer :
       {optim::sgd({.learning_rate = 0.1, .momentum = 0.9}), optim::lars({.learning_rate = 0.5}),
        optim::lamb({.learning_rate = 0.01})}) {
    const Checkpoint at_once = trained(0, optimizer);
    for (const int64_t bucket_bytes : {1, 300, 2000})
      EXPECT_TRUE(different_tensors(at_once.tensors, trained(bucket_bytes, optimizer).tensors).empty())
          << optimizer.name << " in buckets of " << bucket_bytes;
  }
}

// Means over ranks round otherwise than over rows, which a wrong count would not.
void share_batch_norm(train::TrainerOptions& options, train::FitOptions&) {
  options.batch_norm_ranks = 0;
}

TEST(Ranks, TrainAPerceptronWithDropoutAsOneDoes) {
  expect_same_training([] { return tiny_perceptron(0.3); });
}

TEST(Ranks, TrainAResidualNetworkWithBatchNormOverAllAsOneDoes) {
  expect_same_training([] { return tiny_resnet(0.2); }, share_batch_norm, 2e-3);
}

TEST(Ranks, TrainWithAccumulationClippingAndAveragesAsOneDoes) {
  expect_same_training([] { return tiny_resnet(); },
                       [](train::TrainerOptions& options, train::FitOptions&) {
                         options.batch_norm_ranks = 0;
                         options.accumulate = 3;
                         options.clip_norm = 0.5;
                         options.ema_decay = 0.9;
                         options.optimizer = optim::lars({.learning_rate = 0.5});
                       },
                       2e-3);
}

// Rows of a table that several ranks read in one step.
TEST(Ranks, UpdateTheRowsThatAnyOfThemReads) {
  const OptionChange adam = [](train::TrainerOptions& options, train::FitOptions&) {
    options.optimizer = optim::adam({.learning_rate = 0.01});
  };
  const Checkpoint alone = state_of(1, row_task, adam, nullptr, row_source);
  for (const int64_t ranks : {2, 4}) {
    const std::vector<Trained> trained = train_on(ranks, row_task, adam, nullptr, row_source);
    expect_close(alone, trained.front().state, 2e-4);
    EXPECT_TRUE(different_tensors(trained.front().state.tensors, trained.back().state.tensors).empty());
  }
}

TEST(Ranks, ShareALossScale) {
  const OptionChange in_half = [](train::TrainerOptions& options, train::FitOptions&) {
    options.precision = Precision::fp16;
  };
  const std::vector<Trained> trained = train_on(
      2, [] { return tiny_perceptron(); }, in_half);
  const Checkpoint alone = state_of(
      1, [] { return tiny_perceptron(); }, in_half);
  for (const Trained& rank : trained) {
    EXPECT_EQ(rank.state.tensors.at("loss_scale").at(0), alone.tensors.at("loss_scale").at(0));
    EXPECT_EQ(rank.state.tensors.at("loss_scale_good_steps").at(0), 12);
  }
  EXPECT_TRUE(different_tensors(trained[0].state.tensors, trained[1].state.tensors).empty());
  expect_close(alone, trained.front().state, 2e-2);
}

// Of its own rows; the running statistics are then the means of the ranks'.
TEST(Ranks, KeepTheSameStatisticsWithBatchNormOfTheirOwn) {
  const std::vector<Trained> trained = train_on(2, [] { return tiny_resnet(); });
  EXPECT_TRUE(different_tensors(trained[0].state.tensors, trained[1].state.tensors).empty());
  const Checkpoint shared = state_of(
      2, [] { return tiny_resnet(); }, share_batch_norm);
  EXPECT_FALSE(different_tensors(trained[0].state.tensors, shared.tensors).empty());
}

OptionChange in_groups_of(int64_t ranks) {
  return [ranks](train::TrainerOptions& options, train::FitOptions&) { options.batch_norm_ranks = ranks; };
}

// Two ranks that normalize their own rows see what two groups of two see: the same halves of every batch.
TEST(Ranks, NormalizeOverGroupsOfNeighbors) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  const Checkpoint halves = state_of(2, task);
  const std::vector<Trained> groups = train_on(4, task, in_groups_of(2));
  // Rounding grows as where the whole batch is normalized.
  expect_close(halves, groups.front().state, 2e-3);
  for (const Trained& other : groups)
    EXPECT_TRUE(different_tensors(groups.front().state.tensors, other.state.tensors).empty());
  const Checkpoint all = state_of(4, task, in_groups_of(0));
  EXPECT_TRUE(different_tensors(all.tensors, state_of(4, task, in_groups_of(4)).tensors).empty());
  EXPECT_FALSE(different_tensors(all.tensors, groups.front().state.tensors).empty());
}

TEST(Ranks, RefuseGroupsThatDoNotShareThemOut) {
  on_ranks(2, [](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options = rank_options();
    options.communicator = communicator;
    options.batch_norm_ranks = 3;
    EXPECT_ERROR(train::Trainer(tiny_resnet(), options), ErrorCode::invalid_argument,
                 "2 ranks cannot normalize in groups of 3");
  });
}

TEST(Ranks, SeeTheMeasuresOfTheWholeBatch) {
  std::map<int64_t, std::vector<double>> losses;
  for (const int64_t ranks : {1, 2}) {
    std::vector<std::vector<double>> of_ranks(static_cast<size_t>(ranks));
    on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
      train::TrainerOptions options = rank_options();
      if (ranks > 1) options.communicator = communicator;
      train::Trainer trainer(tiny_perceptron(), options);
      train::FitOptions fit;
      fit.on_step = [&](const train::StepEvent& event) {
        of_ranks[static_cast<size_t>(communicator->rank())].push_back(event.measures.at("loss"));
      };
      trainer.fit(tiny_loader(kRankBatch / ranks), fit);
    });
    EXPECT_EQ(of_ranks.front(), of_ranks.back());
    losses[ranks] = of_ranks.front();
  }
  ASSERT_EQ(losses[1].size(), 6U);
  // Numbers of about one, of which each step rounds some ten in another order, and the next begins from them.
  for (size_t step = 0; step < losses[1].size(); ++step)
    EXPECT_NEAR(losses[1][step], losses[2][step], 10 * (static_cast<double>(step) + 1) * 0x1p-24);
}

TEST(Ranks, EvaluateTheirPartsAndMergeThem) {
  train::Trainer alone(tiny_perceptron(), rank_options());
  for (const int64_t samples : {0, 5, 21}) {  // of 45; 0: all
    for (const int64_t ranks : {2, 4}) {
      // In the same small batches: how many rows a product has decides how it is rounded.
      tasks::ClassificationEvaluator expected;
      const int64_t seen =
          alone.evaluate(tiny_evaluation(kRankBatch / ranks), expected, {.samples = samples});
      on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
        train::TrainerOptions options = rank_options();
        options.communicator = communicator;
        train::Trainer trainer(tiny_perceptron(), options);
        tasks::ClassificationEvaluator evaluator;
        EXPECT_EQ(trainer.evaluate(tiny_evaluation(kRankBatch / ranks), evaluator, {.samples = samples}),
                  seen);
        EXPECT_EQ(evaluator.results(), expected.results());
        EXPECT_EQ(different_tensors(evaluator.state(), expected.state()), std::vector<std::string>{});
      });
    }
  }
}

OptionChange until(int64_t step) {
  return [step](train::TrainerOptions& options, train::FitOptions& fit) {
    options.batch_norm_ranks = 0;
    fit.epochs = 3;
    fit.max_steps = step;
  };
}

TEST(Ranks, ResumeOnTheSameNumberToTheSameBits) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  const Checkpoint straight = state_of(2, task, until(17));
  const Checkpoint stopped = state_of(2, task, until(8));
  EXPECT_EQ(stopped.metadata.at("batch"), "2");
  EXPECT_TRUE(different_tensors(straight.tensors, state_of(2, task, until(17), &stopped).tensors).empty());
}

TEST(Ranks, ResumeOnOtherNumbersWithTheSameData) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  const Checkpoint straight = state_of(1, task, until(17));
  Checkpoint state = state_of(2, task, until(5));
  state = state_of(1, task, until(11), &state);
  state = state_of(4, task, until(17), &state);
  EXPECT_EQ(state.metadata.at("step"), "17");
  expect_close(straight, state, 5e-3);
}

// A step that one rank began is one step's worth of gradients on two.
TEST(Ranks, TakeUpWhatOneHadAccumulated) {
  const OptionChange accumulating = [](train::TrainerOptions& options, train::FitOptions&) {
    options.accumulate = 2;
  };
  std::atomic<bool> stop{false};
  const OptionChange stopped_within = [&](train::TrainerOptions& options, train::FitOptions& fit) {
    accumulating(options, fit);
    fit.stop = &stop;
    fit.on_step = [&](const train::StepEvent& event) { stop = event.position.batch == 3; };
  };
  const TaskMaker task = [] { return tiny_perceptron(); };
  const Checkpoint within = state_of(1, task, stopped_within);
  ASSERT_EQ(within.metadata.at("batch"), "3");
  expect_close(state_of(1, task, accumulating), state_of(2, task, accumulating, &within), 2e-4);
}

TEST(Ranks, StopTogetherWhenOneIsToldTo) {
  std::atomic<bool> stop{false};
  const std::vector<Trained> trained = train_on(
      2, [] { return tiny_perceptron(); },
      [&](train::TrainerOptions& options, train::FitOptions& fit) {
        if (options.communicator->rank() == 0) return;
        fit.stop = &stop;
        fit.on_step = [&](const train::StepEvent& event) { stop = event.position.step == 4; };
      });
  for (const Trained& rank : trained) {
    EXPECT_FALSE(rank.result.completed);
    EXPECT_EQ(rank.result.position.step, 4);
  }
}

TEST(Ranks, SaveOnce) {
  const TemporaryFolder folder;
  train_on(
      2, [] { return tiny_perceptron(); },
      [&](train::TrainerOptions& options, train::FitOptions& fit) {
        // Each could write into a folder of its own; only the first does.
        fit.checkpoints = folder.path() / std::to_string(options.communicator->rank());
      });
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "0" / "last.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "1"));
}

// Where ranks wait for each other or not, and whether steps follow one that was not looked at.
struct Failing {
  std::string name;
  OptionChange change;
};

class FailingRanks : public ::testing::TestWithParam<Failing> {};

TEST_P(FailingRanks, StopWithTheNameOfTheOneThatFailed) {
  std::vector<std::string> messages(2);
  on_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options = rank_options();
    options.communicator = communicator;
    train::FitOptions fit;
    GetParam().change(options, fit);
    train::Trainer trainer(tiny_linear_of_rows(), options);
    // The third batch of 8 is rows 16 to 23; the broken row 20 is rank 1's.
    const TinyData data = tiny_data(48);
    Tensor images = data.images.cast(DataType::fp32).reshape({48, kTinySize, kTinySize, 1});
    images.set(20 * kTinySize * kTinySize + 7, std::numeric_limits<double>::quiet_NaN());
    const data::Rows rows({{"images", images}, {"labels", data.labels.cast(DataType::int32)}},
                          {.batch_size = 4, .shuffle = false});
    try {
      trainer.fit(rows, fit);
    } catch (const Error& error) {
      messages[static_cast<size_t>(communicator->rank())] = error.what();
    }
  });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("because the input 'images' holds nan in row 0 of the batch"), std::string::npos)
        << message;
  EXPECT_NE(messages[0].find("rank 1: step 3"), std::string::npos) << messages[0];
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, FailingRanks,
    ::testing::Values(Failing{"together", [](auto&, auto&) {}},
                      Failing{"delayed", [](auto& options, auto&) { options.gradient_delay = 1; }},
                      Failing{"in_a_local_step", [](auto& options, auto&) { options.local_steps = 2; }},
                      Failing{"in_an_averaging_step", [](auto& options, auto&) { options.local_steps = 3; }},
                      Failing{"delayed_ahead",
                              [](auto& options, auto&) {
                                options.device = std::make_shared<DetachedDevice>();
                                options.gradient_delay = 1;
                              }},
                      Failing{"in_a_local_step_ahead",
                              [](auto& options, auto&) {
                                options.device = std::make_shared<DetachedDevice>();
                                options.local_steps = 4;
                              }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
