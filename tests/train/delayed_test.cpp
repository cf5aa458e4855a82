// Updates with the gradients of the step before.
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/asynchrony.h"

namespace tessera::testing {
namespace {

OptionChange delayed(const OptionChange& change = {}) {
  return [=](train::TrainerOptions& options, train::FitOptions& fit) {
    options.gradient_delay = 1;
    if (change) change(options, fit);
  };
}

TEST(Delayed, IsTheDescentThatIsWrittenByHand) {
  for (const int64_t ranks : {1, 2, 4}) {
    SCOPED_TRACE(ranks);
    Checkpoint start;
    const std::vector<Trained> trained = train_line(ranks, delayed(), &start);
    Line line = Line::from(start);
    Line at_once = line;
    std::vector<double> before;
    for (int64_t step = 0; step < kLineSteps; ++step) {
      const std::vector<double> now = line.gradient_sums(line_batch(step));
      if (step > 0) line.update(before);
      before = now;
      at_once.update(at_once.gradient_sums(line_batch(step)));
    }
    expect_line(trained.front().state, line);
    // Of the last step, not used yet.
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_NEAR(trained.front().state.tensors.at("line.weight/delayed").at(i),
                  before[static_cast<size_t>(i)], 1e-4);  // of seven rows with numbers of about ten
    EXPECT_EQ(trained.front().state.tensors.at("delayed_weight").at(0), kRankBatch - 1);
    for (size_t i = 0; i < 4; ++i) EXPECT_GT(std::abs(line.parameters[i] - at_once.parameters[i]), 1e-3);
    for (const Trained& other : trained)
      EXPECT_EQ(different_tensors(trained.front().state.tensors, other.state.tensors),
                std::vector<std::string>{});
  }
}

// A perceptron whose data come in another order would differ in the second digit.
TEST(Delayed, RanksTrainAsOneDoes) {
  expect_same_training([] { return tiny_perceptron(0.3); }, delayed());
}

// Means over ranks round otherwise than over rows, which a wrong count would not; Adam's quotients of small
// numbers pass on more of it.
TEST(Delayed, RanksAccumulateClipAndAverageAsOneDoes) {
  for (const optim::Optimizer& optimizer :
       {optim::lars({.learning_rate = 0.5}), optim::adam({.learning_rate = 1e-3})}) {
    SCOPED_TRACE(optimizer.name);
    expect_same_training([] { return tiny_resnet(); },
                         delayed([&](train::TrainerOptions& options, train::FitOptions&) {
                           options.batch_norm_ranks = 0;
                           options.accumulate = 3;
                           options.clip_norm = 0.5;
                           options.ema_decay = 0.9;
                           options.optimizer = optimizer;
                         }),
                         5e-3);
  }
}

// Where steps follow one that was not looked at yet.
TEST(Delayed, RanksThatWorkAheadMakeTheSameSteps) {
  const auto trained = [](bool ahead) {
    return state_of(
        2, [] { return tiny_perceptron(); }, delayed([&](train::TrainerOptions& options, train::FitOptions&) {
          if (ahead) options.device = std::make_shared<DetachedDevice>();
        }));
  };
  // By the reference's kernels, which round otherwise, as above.
  expect_close(trained(false), trained(true), 2e-4);
}

TEST(Delayed, PartsOfTheOptimizersStateMakeTheSameUpdates) {
  const TaskMaker task = [] { return tiny_perceptron(0.3); };
  const auto trained = [&](int64_t ranks, bool shards) {
    return state_of(ranks, task, delayed([=](train::TrainerOptions& options, train::FitOptions&) {
                      options.shard_optimizer = shards;
                      options.optimizer = optim::adamw({.learning_rate = 0.01, .weight_decay = 0.1});
                    }));
  };
  for (const int64_t ranks : {2, 4})
    EXPECT_EQ(different_tensors(trained(ranks, false).tensors, trained(ranks, true).tensors),
              std::vector<std::string>{});
}

TEST(Delayed, TheBucketsChangeNoBit) {
  const auto trained = [](int64_t bucket_bytes) {
    return state_of(
        2, [] { return tiny_resnet(); }, delayed([=](train::TrainerOptions& options, train::FitOptions&) {
          options.bucket_bytes = bucket_bytes;
        }));
  };
  const Checkpoint at_once = trained(0);
  for (const int64_t bucket_bytes : {1, 300})
    EXPECT_EQ(different_tensors(at_once.tensors, trained(bucket_bytes).tensors), std::vector<std::string>{});
}

// Neither weight decay nor momentum, nor the count of steps; what the network keeps of the batch changes.
TEST(Delayed, TheFirstStepUpdatesNothing) {
  const auto after = [](int64_t steps, int64_t ranks) {
    std::vector<Checkpoint> states(static_cast<size_t>(ranks));
    on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
      train::TrainerOptions options = rank_options();
      options.gradient_delay = 1;
      options.clip_norm = 0.1;
      options.ema_decay = 0.9;
      options.optimizer = optim::adamw({.learning_rate = 0.01, .weight_decay = 0.1});
      options.precision = Precision::fp16;
      if (ranks > 1) options.communicator = communicator;
      train::Trainer trainer(tiny_resnet(0.2), options);
      if (steps > 0) trainer.fit(*tiny_source(kRankBatch / ranks), {.max_steps = steps});
      states[static_cast<size_t>(communicator->rank())] = trainer.training_state();
    });
    return states.front();
  };
  const auto is_of_batch = [](const std::string& name) {
    return name == "random_counter" || name.find("running_") != std::string::npos ||
           name.find("delayed") != std::string::npos;
  };
  for (const int64_t ranks : {1, 2}) {
    const Checkpoint start = after(0, ranks);
    const std::vector<std::string> first = different_tensors(start.tensors, after(1, ranks).tensors);
    EXPECT_TRUE(std::all_of(first.begin(), first.end(), is_of_batch));
    EXPECT_EQ(std::count(first.begin(), first.end(), "random_counter"), 1);
    EXPECT_EQ(std::count(first.begin(), first.end(), "delayed_steps"), 1);
    EXPECT_TRUE(std::any_of(first.begin(), first.end(),
                            [](const auto& name) { return name.ends_with("running_mean"); }));
    const std::vector<std::string> second = different_tensors(start.tensors, after(2, ranks).tensors);
    EXPECT_EQ(std::count(second.begin(), second.end(), "optimizer_step"), 1);
    EXPECT_EQ(std::count(second.begin(), second.end(), "loss_scale_good_steps"), 1);
  }
}

OptionChange until(int64_t step) {
  return delayed([step](train::TrainerOptions& options, train::FitOptions& fit) {
    options.batch_norm_ranks = 0;
    fit.epochs = 3;
    fit.max_steps = step;
  });
}

TEST(Delayed, ResumesOnTheSameNumberToTheSameBits) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  for (const int64_t ranks : {2, 4}) {
    const Checkpoint straight = state_of(ranks, task, until(17));
    const Checkpoint stopped = state_of(ranks, task, until(8));
    EXPECT_EQ(different_tensors(straight.tensors, state_of(ranks, task, until(17), &stopped).tensors),
              std::vector<std::string>{});
  }
}

// Without what was delayed the weights of a step later would differ in the second digit.
TEST(Delayed, ResumesOnOtherNumbersWithTheSameData) {
  const TaskMaker task = [] { return tiny_perceptron(0.2); };
  const Checkpoint straight = state_of(1, task, until(17));
  Checkpoint state = state_of(2, task, until(5));
  state = state_of(1, task, until(11), &state);
  state = state_of(4, task, until(17), &state);
  EXPECT_EQ(state.metadata.at("step"), "17");
  expect_close(straight, state, 2e-4);
}

// Each rank writes its part of the sums.
TEST(Delayed, IsWholeInTheFile) {
  const TemporaryFolder folder;
  const std::vector<Trained> trained = train_on(
      4, [] { return tiny_perceptron(); },
      delayed([&](train::TrainerOptions&, train::FitOptions& fit) { fit.checkpoints = folder.path(); }));
  const Checkpoint file = load_checkpoint(folder / "last.safetensors");
  EXPECT_TRUE(file.tensors.contains("fc1.weight/delayed"));
  EXPECT_EQ(different_tensors(file.tensors, trained.front().state.tensors), std::vector<std::string>{});
  // Taken up by one of the ranks alone, it counts once.
  for (const int64_t ranks : {1, 2, 4}) {
    on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
      train::TrainerOptions options = rank_options();
      options.gradient_delay = 1;
      if (ranks > 1) options.communicator = communicator;
      train::Trainer trainer(tiny_perceptron(), options);
      trainer.restore(file, "the file");
      EXPECT_EQ(different_tensors(file.tensors, trainer.training_state().tensors),
                std::vector<std::string>{});
    });
  }
}

TEST(Delayed, MayBeginAndEndWithinARun) {
  const TaskMaker task = [] { return tiny_perceptron(); };
  const auto at_once = [](int64_t step) {
    return [step](train::TrainerOptions&, train::FitOptions& fit) { fit.max_steps = step; };
  };
  const Checkpoint begun = state_of(2, task, at_once(3));
  const Checkpoint later = state_of(2, task, delayed(at_once(7)), &begun);
  EXPECT_TRUE(later.tensors.contains("fc1.weight/delayed"));
  const Checkpoint end = state_of(2, task, at_once(9), &later);
  EXPECT_EQ(end.metadata.at("step"), "9");
  EXPECT_FALSE(end.tensors.contains("fc1.weight/delayed"));
}

// From a scale with which the gradients overflow: all ranks skip the same steps, and take the next step's.
TEST(Delayed, LowersALossScaleTogether) {
  const TaskMaker task = [] { return tiny_perceptron(); };
  const OptionChange in_half = delayed(
      [](train::TrainerOptions& options, train::FitOptions&) { options.precision = Precision::fp16; });
  Checkpoint start = state_of(1, task, [&](train::TrainerOptions& options, train::FitOptions& fit) {
    in_half(options, fit);
    fit.max_steps = 1;
  });
  start.tensors.at("loss_scale").set(0, 0x1p24);
  const std::vector<Trained> trained = train_on(2, task, in_half, &start);
  EXPECT_EQ(different_tensors(trained[0].state.tensors, trained[1].state.tensors),
            std::vector<std::string>{});
  const auto& tensors = trained[0].state.tensors;
  EXPECT_LT(tensors.at("loss_scale").at(0), 0x1p24);
  EXPECT_GT(tensors.at("loss_scale_good_steps").at(0), 0);
  EXPECT_FALSE(tensors.at("fc1.weight").identical(start.tensors.at("fc1.weight")));
}

// All that a value is made of: the nodes, and the inputs of the graph.
struct Ancestors {
  std::set<const Node*> nodes;
  std::set<const Value*> inputs;
};

void collect(const Value* value, Ancestors& ancestors) {
  const Node* node = value->producer();
  if (node == nullptr) ancestors.inputs.insert(value);
  if (node == nullptr || !ancestors.nodes.insert(node).second) return;
  for (const Value* input : node->inputs()) collect(input, ancestors);
}

Ancestors ancestors_of(const std::vector<const Value*>& values) {
  Ancestors ancestors;
  for (const Value* value : values) collect(value, ancestors);
  return ancestors;
}

std::vector<const Node*> exchanges_in(const Ancestors& ancestors) {
  std::vector<const Node*> exchanges;
  for (const Node* node : ancestors.nodes) {
    if (node->schema().operator_class == OperatorClass::communication) exchanges.push_back(node);
  }
  return exchanges;
}

bool reads_the_batch(const Node& exchange) {
  const Ancestors ancestors = ancestors_of({exchange.inputs().begin(), exchange.inputs().end()});
  return std::any_of(ancestors.inputs.begin(), ancestors.inputs.end(), [](const Value* input) {
    return input->name() == "images" || input->name() == "labels";
  });
}

// What updates wait for of the other ranks, where each normalizes by itself.
TEST(Delayed, WaitsForNothingThatOtherRanksDoInTheStep) {
  for (const int64_t delay : {0, 1}) {
    for (const bool shards : {false, true}) {
      const train::StepGraph step =
          train::build_training_step(tiny_resnet(), {.phase = {.groups = {{.optimizer = optim::adam()}}},
                                                     .clip_norm = 1,
                                                     .ema_decay = 0.9,
                                                     .ranks = {.count = 2},
                                                     .shard_optimizer = shards,
                                                     .gradient_delay = delay});
      verify(*step.graph);
      std::vector<const Value*> updated;
      std::vector<const Value*> kept;
      for (const auto& [state, next] : step.graph->updates()) {
        if (state->name().find("running_") != std::string::npos) continue;
        (state->name().find("delayed") == std::string::npos ? updated : kept).push_back(next);
      }
      const std::vector<const Node*> exchanges = exchanges_in(ancestors_of(updated));
      ASSERT_FALSE(exchanges.empty());
      // Sharded parameters are gathered after the update, which looks at this rank's objective.
      const bool waits = std::any_of(exchanges.begin(), exchanges.end(), [](const Node* exchange) {
        return exchange->operator_name() != "all_gather" && reads_the_batch(*exchange);
      });
      EXPECT_EQ(waits, delay == 0);
      EXPECT_EQ(kept.empty(), delay == 0);
      const std::vector<const Node*> before_gradients = exchanges_in(ancestors_of(kept));
      EXPECT_TRUE(std::none_of(before_gradients.begin(), before_gradients.end(),
                               [](const Node* exchange) { return reads_the_batch(*exchange); }));
    }
  }
}

TEST(Delayed, RefusesWhatItCannot) {
  EXPECT_ERROR(train::build_training_step(tiny_perceptron(), {.gradient_delay = 2}),
               ErrorCode::invalid_argument, "gradient_delay is 2");
  EXPECT_ERROR(train::build_training_step(row_task(), {.gradient_delay = 1}), ErrorCode::invalid_argument,
               "'words", "updated by rows", "delayed");
}

}  // namespace
}  // namespace tessera::testing
