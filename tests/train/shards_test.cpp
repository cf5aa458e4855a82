// Ranks that share out the optimizer's state make the updates of ranks that do not.
#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/base/error.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

constexpr int64_t kRankCounts[] = {2, 4};

OptionChange sharded(const OptionChange& change = {}, bool shards = true) {
  return [=](train::TrainerOptions& options, train::FitOptions& fit) {
    options.shard_optimizer = shards;
    if (change) change(options, fit);
  };
}

OptionChange with(const optim::Optimizer& optimizer) {
  return [=](train::TrainerOptions& options, train::FitOptions&) { options.optimizer = optimizer; };
}

// Of 36 x 12, 12, 12 x 3 and 3 weights: four ranks have parts of one of the last, and one of them has none.
nn::Task odd_sizes() {
  return tiny_perceptron(0.3);
}

// The whole state on every rank, and of the same bits.
Checkpoint sharded_state(int64_t ranks, const TaskMaker& task, const OptionChange& change = {},
                         const Checkpoint* from = nullptr, const SourceMaker& source = tiny_source) {
  std::vector<Trained> trained = train_on(ranks, task, sharded(change), from, source);
  for (const Trained& other : trained)
    EXPECT_EQ(different_tensors(trained.front().state.tensors, other.state.tensors),
              std::vector<std::string>{});
  return std::move(trained.front().state);
}

void expect_same_bits(const TaskMaker& task, const OptionChange& change,
                      const SourceMaker& source = tiny_source) {
  for (const int64_t ranks : kRankCounts) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(different_tensors(state_of(ranks, task, change, nullptr, source).tensors,
                                sharded_state(ranks, task, change, nullptr, source).tensors),
              std::vector<std::string>{});
  }
}

TEST(Shards, UpdateElementsToTheBitsOfTheWhole) {
  for (const optim::Optimizer& optimizer :
       {optim::sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}),
        optim::adam({.learning_rate = 0.01, .weight_decay = 0.01}),
        optim::adamw({.learning_rate = 0.01, .weight_decay = 0.1}), optim::adagrad({.weight_decay = 0.01}),
        optim::rmsprop({.momentum = 0.9, .weight_decay = 0.01, .centered = true})}) {
    SCOPED_TRACE(optimizer.name);
    expect_same_bits(odd_sizes, with(optimizer));
  }
}

// A norm that is added up part by part rounds otherwise: 2^-24 a step, and some more in the steps after it.
// The norm of a part in place of the whole would be off by a factor of its own.
TEST(Shards, ScaleByTheNormsOfWholeParameters) {
  for (const optim::Optimizer& optimizer :
       {optim::lars({.learning_rate = 0.5}), optim::lamb({.learning_rate = 0.01}),
        optim::lamb({.learning_rate = 0.01, .trust_all = true})}) {
    for (const int64_t ranks : kRankCounts) {
      SCOPED_TRACE(optimizer.name + " on " + std::to_string(ranks));
      expect_close(state_of(ranks, odd_sizes, with(optimizer)),
                   sharded_state(ranks, odd_sizes, with(optimizer)), 1e-5);
    }
  }
}

TEST(Shards, AccumulateToTheBitsOfTheWhole) {
  expect_same_bits([] { return tiny_resnet(); },
                   [](train::TrainerOptions& options, train::FitOptions&) {
                     options.accumulate = 3;
                     options.ema_decay = 0.9;
                     options.optimizer = optim::adam({.learning_rate = 0.01});
                   });
}

// Within the rounding of a norm that is added up part by part, as above; the norm of a rank's parts in place
// of that of all is off by a factor.
TEST(Shards, ClipByTheNormOfAllGradients) {
  const OptionChange clipped = [](train::TrainerOptions& options, train::FitOptions&) {
    options.clip_norm = 0.05;
  };
  const Checkpoint whole = state_of(2, odd_sizes, clipped);
  EXPECT_FALSE(different_tensors(whole.tensors, state_of(2, odd_sizes).tensors).empty());
  expect_close(whole, sharded_state(2, odd_sizes, clipped), 1e-5);
}

TEST(Shards, ShareALossScale) {
  const OptionChange in_half = [](train::TrainerOptions& options, train::FitOptions&) {
    options.precision = Precision::fp16;
  };
  expect_same_bits(odd_sizes, in_half);
  // From a scale with which the gradients overflow: all ranks skip the same steps.
  Checkpoint start = state_of(1, odd_sizes, [&](train::TrainerOptions& options, train::FitOptions& fit) {
    in_half(options, fit);
    fit.max_steps = 1;
  });
  start.tensors.at("loss_scale").set(0, 0x1p24);
  const Checkpoint whole = state_of(4, odd_sizes, in_half, &start);
  const Checkpoint shared = sharded_state(4, odd_sizes, in_half, &start);
  EXPECT_LT(whole.tensors.at("loss_scale").at(0), 0x1p24);
  EXPECT_EQ(different_tensors(whole.tensors, shared.tensors), std::vector<std::string>{});
}

TEST(Shards, LeaveTablesWholeThatAreUpdatedByRows) {
  expect_same_bits(row_task, with(optim::adam({.learning_rate = 0.01})), row_source);
}

TEST(Shards, TrainTheSameWhateverTheBuckets) {
  const auto trained = [](int64_t bucket_bytes) {
    return sharded_state(
        2, [] { return tiny_resnet(); },
        [=](train::TrainerOptions& options, train::FitOptions&) {
          options.bucket_bytes = bucket_bytes;
          options.optimizer = optim::lamb({.learning_rate = 0.01});
        });
  };
  const Checkpoint at_once = trained(0);
  for (const int64_t bucket_bytes : {1, 300, 2000})
    EXPECT_EQ(different_tensors(at_once.tensors, trained(bucket_bytes).tensors), std::vector<std::string>{})
        << bucket_bytes;
}

train::StepGraph step_of(const optim::Optimizer& optimizer, int64_t ranks, bool shards = true) {
  return train::build_training_step(odd_sizes(), {.phase = {.groups = {{.optimizer = optimizer}}},
                                                  .ranks = {.count = ranks},
                                                  .shard_optimizer = shards});
}

// Bytes of what the optimizer keeps.
int64_t state_bytes(const train::StepGraph& step) {
  int64_t bytes = 0;
  for (const nn::Variable& variable : step.variables) {
    if (variable.name.ends_with("_moment")) bytes += tensor_bytes(variable.data_type, variable.shape);
  }
  return bytes;
}

TEST(Shards, TakeTheMemoryOfTheirPart) {
  const int64_t weights = 36 * 12 + 12 + 12 * 3 + 3;
  const auto adam = optim::adam();
  EXPECT_EQ(state_bytes(step_of(adam, 1)), 2 * 4 * weights);
  EXPECT_EQ(state_bytes(step_of(adam, 4, false)), 2 * 4 * weights);
  // Each of the four parameters is filled up to whole parts.
  EXPECT_EQ(state_bytes(step_of(adam, 2)), 2 * 4 * (weights + 1) / 2);
  EXPECT_EQ(state_bytes(step_of(adam, 4)), 2 * 4 * (weights + 1) / 4);
  EXPECT_EQ(state_bytes(step_of(adam, 5)), 2 * 4 * (87 + 3 + 8 + 1));
}

int64_t count_of(const train::StepGraph& step, const std::string& operator_name) {
  return std::count_if(step.graph->nodes().begin(), step.graph->nodes().end(),
                       [&](const auto& node) { return node->operator_name() == operator_name; });
}

// One all_reduce is that of the measures; the norms of all parameters travel in another one.
TEST(Shards, TravelTogether) {
  for (const auto& [optimizer, sums] :
       {std::pair{optim::adam(), 1}, std::pair{optim::lamb({.trust_all = true}), 2},
        std::pair{optim::lars(), 2}}) {
    const train::StepGraph step = step_of(optimizer, 2);
    verify(*step.graph);
    EXPECT_EQ(count_of(step, "reduce_scatter"), 1) << optimizer.name;
    EXPECT_EQ(count_of(step, "all_gather"), 1) << optimizer.name;
    EXPECT_EQ(count_of(step, "all_reduce"), sums) << optimizer.name;
  }
}

// The order of collectives hangs on the order of nodes, and on the bytes that they take.
TEST(Shards, AreOfTheSameNodesOnAllRanks) {
  const auto nodes_of = [](int64_t rank) {
    const train::StepGraph step = train::build_training_step(
        odd_sizes(), {.ranks = {.rank = rank, .count = 4}, .shard_optimizer = true});
    std::vector<std::string> nodes;
    for (const auto& node : step.graph->nodes())
      nodes.push_back(node->operator_name() + " " + to_string(node->output()->type()));
    return nodes;
  };
  for (const int64_t rank : {1, 3}) EXPECT_EQ(nodes_of(rank), nodes_of(0));
}

TEST(Shards, RefuseAnOptimizerThatNeedsWholeParameters) {
  optim::Optimizer whole = optim::sgd();
  whole.name = "by_matrices";
  whole.elementwise = false;
  EXPECT_ERROR(step_of(whole, 2), ErrorCode::invalid_argument, "fc1.weight",
               "by_matrices needs whole parameters");
  step_of(whole, 1);
}

OptionChange stopped_after(int64_t step) {
  return [=](train::TrainerOptions& options, train::FitOptions& fit) {
    options.optimizer = optim::adam({.learning_rate = 0.01});
    fit.epochs = 3;
    fit.max_steps = step;
  };
}

TEST(Shards, ResumeOnTheSameNumberToTheSameBits) {
  for (const int64_t ranks : kRankCounts) {
    const Checkpoint straight = sharded_state(ranks, odd_sizes, stopped_after(17));
    const Checkpoint stopped = sharded_state(ranks, odd_sizes, stopped_after(8));
    EXPECT_EQ(different_tensors(straight.tensors,
                                sharded_state(ranks, odd_sizes, stopped_after(17), &stopped).tensors),
              std::vector<std::string>{});
  }
}

// Also with the state of ranks that did not share it out, to the same bits as if they went on. Another number
// of ranks adds up gradients in another order, of which adaptive steps make more from step to step; a state
// that is not taken up is off by whole steps of 0.01.
TEST(Shards, ResumeOnOtherNumbers) {
  const Checkpoint straight = state_of(1, odd_sizes, stopped_after(17));
  for (const auto& [first, second] : {std::pair{2, 1}, std::pair{2, 4}, std::pair{1, 2}, std::pair{4, 2}}) {
    SCOPED_TRACE(std::to_string(first) + " to " + std::to_string(second));
    const Checkpoint stopped = sharded_state(first, odd_sizes, stopped_after(8));
    const Checkpoint resumed = sharded_state(second, odd_sizes, stopped_after(17), &stopped);
    EXPECT_EQ(resumed.metadata.at("step"), "17");
    expect_close(straight, resumed, 1e-3);
    EXPECT_EQ(
        different_tensors(resumed.tensors, state_of(second, odd_sizes, stopped_after(17), &stopped).tensors),
        std::vector<std::string>{});
  }
}

TEST(Shards, AreSavedAsOneFileOfWholeTensors) {
  for (const int64_t ranks : kRankCounts) {
    const TemporaryFolder folder;
    const OptionChange saving = [&](train::TrainerOptions& options, train::FitOptions& fit) {
      options.optimizer = optim::lamb({.learning_rate = 0.01});
      fit.checkpoints = folder.path();
      fit.checkpoint_minutes = 1e-9;  // each step takes longer
      fit.keep_checkpoints = 2;
    };
    const Checkpoint state = sharded_state(ranks, odd_sizes, saving);
    const Checkpoint saved = load_checkpoint(folder / "last.safetensors");
    EXPECT_EQ(different_tensors(saved.tensors, state.tensors), std::vector<std::string>{});
    EXPECT_EQ(saved.metadata.at("step"), "12");
    expect_close(state_of(1, odd_sizes, with(optim::lamb({.learning_rate = 0.01}))), saved, 2e-4);
    EXPECT_EQ(load_checkpoint(folder / "step-00000011.safetensors").metadata.at("step"), "11");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
  }
}

// Nobody waits for a rank that cannot write.
TEST(Shards, GoOnWithoutACheckpointButTheLast) {
  const TemporaryFolder folder;
  const auto blocked = folder / "checkpoints";
  write_file(blocked, "a file in the folder's place");
  const OptionChange saving = [&](train::TrainerOptions& options, train::FitOptions& fit) {
    fit.checkpoints = blocked;
    fit.checkpoint_steps = 2;
    fit.on_step = [&, first = options.communicator->rank() == 0](const train::StepEvent& event) {
      if (first && event.position.step == 5) std::filesystem::remove(blocked);
    };
  };
  const Checkpoint state = sharded_state(2, odd_sizes, saving);
  EXPECT_EQ(different_tensors(load_checkpoint(blocked / "last.safetensors").tensors, state.tensors),
            std::vector<std::string>{});
  const auto always = folder / "always";
  write_file(always, "a file in the folder's place");
  EXPECT_ERROR(
      sharded_state(2, odd_sizes,
                    [&](train::TrainerOptions&, train::FitOptions& fit) { fit.checkpoints = always; }),
      ErrorCode::io, "always");
}

}  // namespace
}  // namespace tessera::testing
