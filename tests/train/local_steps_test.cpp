// Local SGD: ranks that train by themselves and take the means of all now and then.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/asynchrony.h"

namespace tessera::testing {
namespace {

OptionChange locally(int64_t steps, const OptionChange& change = {}) {
  return [=](train::TrainerOptions& options, train::FitOptions& fit) {
    options.local_steps = steps;
    if (change) change(options, fit);
  };
}

void expect_equal_ranks(const std::vector<Trained>& trained) {
  for (const Trained& other : trained)
    EXPECT_EQ(different_tensors(trained.front().state.tensors, other.state.tensors),
              std::vector<std::string>{});
}

// Seven steps are no multiple of 2 or 3: the last of the epoch averages too.
TEST(LocalSteps, AreTheDescentsThatAreWrittenByHand) {
  for (const int64_t ranks : {2, 4}) {
    for (const int64_t local_steps : {2, 3, 100}) {
      SCOPED_TRACE(fmt::format("{} steps on {} ranks", local_steps, ranks));
      Checkpoint start;
      const std::vector<Trained> trained = train_line(ranks, locally(local_steps), &start);
      std::vector<Line> lines(static_cast<size_t>(ranks), Line::from(start));
      Line together = lines.front();
      for (int64_t step = 0; step < kLineSteps; ++step) {
        const int64_t rows = kRankBatch / ranks;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          Line& line = lines[static_cast<size_t>(rank)];
          line.update(line.gradient_sums(rows_between(line_batch(step), rank * rows, rows)));
        }
        together.update(together.gradient_sums(line_batch(step)));
        if ((step + 1) % local_steps != 0 && step + 1 < kLineSteps) continue;
        Line mean;
        for (size_t i = 0; i < 4; ++i) {
          for (const Line& line : lines) {
            mean.parameters[i] += line.parameters[i] / static_cast<double>(ranks);
            mean.momentum[i] += line.momentum[i] / static_cast<double>(ranks);
          }
        }
        std::fill(lines.begin(), lines.end(), mean);
      }
      expect_line(trained.front().state, lines.front());
      EXPECT_GT(std::abs(lines.front().parameters[0] - together.parameters[0]), 1e-3);
      expect_equal_ranks(trained);
    }
  }
}

TEST(LocalSteps, OfOneRankAreItsSteps) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  EXPECT_EQ(different_tensors(state_of(1, task).tensors, state_of(1, task, locally(4)).tensors),
            std::vector<std::string>{});
}

// The states after each step, by rank.
using Course = std::vector<std::map<int64_t, std::map<std::string, Tensor>>>;

Course course_of(const OptionChange& change, const TaskMaker& task) {
  Course course(2);
  on_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options = rank_options();
    options.communicator = communicator;
    train::FitOptions fit{.epochs = 2};
    change(options, fit);
    train::Trainer trainer(task(), options);
    fit.on_step = [&](const train::StepEvent& event) {
      course[static_cast<size_t>(communicator->rank())][event.position.step] =
          trainer.training_state().tensors;
    };
    trainer.fit(*tiny_source(kRankBatch / 2), fit);
  });
  return course;
}

std::vector<int64_t> equal_steps(const Course& course) {
  std::vector<int64_t> equal;
  for (const auto& [step, tensors] : course[0]) {
    if (different_tensors(tensors, course[1].at(step)).empty()) equal.push_back(step);
  }
  return equal;
}

// With all that a step keeps. An epoch has six steps.
TEST(LocalSteps, LeaveRanksAlikeAfterEachAverageAndAtNoOtherStep) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  const auto all = [](const OptionChange& change) {
    return locally(4, [=](train::TrainerOptions& options, train::FitOptions& fit) {
      options.optimizer = optim::adam({.learning_rate = 0.01});
      options.ema_decay = 0.9;
      options.clip_norm = 0.5;
      if (change) change(options, fit);
    });
  };
  EXPECT_EQ(equal_steps(course_of(all({}), task)), (std::vector<int64_t>{4, 6, 8, 12}));
  const OptionChange stopped = [](train::TrainerOptions&, train::FitOptions& fit) { fit.max_steps = 9; };
  EXPECT_EQ(equal_steps(course_of(all(stopped), task)), (std::vector<int64_t>{4, 6, 8, 9}));
  const data::Loader loader = tiny_evaluation(4);
  const OptionChange evaluated = [&](train::TrainerOptions&, train::FitOptions& fit) {
    fit.evaluations = {evaluation_by(loader)};
    fit.evaluations.front().every_steps = 3;
  };
  EXPECT_EQ(equal_steps(course_of(all(evaluated), task)), (std::vector<int64_t>{3, 4, 6, 8, 9, 12}));
}

TEST(LocalSteps, AverageWhatWasAccumulated) {
  const OptionChange accumulating = locally(2, [](train::TrainerOptions& options, train::FitOptions&) {
    options.accumulate = 2;
    options.optimizer = optim::lars({.learning_rate = 0.5});
  });
  const TaskMaker task = [] { return tiny_perceptron(0.2); };
  const std::vector<Trained> trained = train_on(2, task, accumulating);
  expect_equal_ranks(trained);
  EXPECT_EQ(different_tensors(trained.front().state.tensors, state_of(2, task, accumulating).tensors),
            std::vector<std::string>{});
}

// A table is averaged whole, also where one rank read no row.
TEST(LocalSteps, AverageTablesThatAreUpdatedByRows) {
  const std::vector<Trained> trained = train_on(2, row_task, locally(3), nullptr, row_source);
  expect_equal_ranks(trained);
  EXPECT_FALSE(
      different_tensors(trained.front().state.tensors, state_of(2, row_task, {}, nullptr, row_source).tensors)
          .empty());
}

TEST(LocalSteps, ResumeToTheSameBits) {
  const TaskMaker task = [] { return tiny_resnet(0.2); };
  const auto until = [](int64_t step) {
    return locally(4, [step](train::TrainerOptions&, train::FitOptions& fit) {
      fit.epochs = 3;
      fit.max_steps = step;
    });
  };
  const Checkpoint straight = state_of(2, task, until(16));
  for (const int64_t step : {4, 6, 8}) {
    const Checkpoint stopped = state_of(2, task, until(step));
    EXPECT_EQ(different_tensors(straight.tensors, state_of(2, task, until(16), &stopped).tensors),
              std::vector<std::string>{})
        << step;
  }
}

TEST(LocalSteps, AreEndedAndSavedWhereRanksAreAlike) {
  const TemporaryFolder folder;
  std::atomic<bool> stop{false};
  const std::vector<Trained> trained = train_on(
      2, [] { return tiny_perceptron(); },
      locally(3, [&](train::TrainerOptions& options, train::FitOptions& fit) {
        fit.checkpoints = folder.path();
        fit.checkpoint_steps = 2;  // six and twelve are steps of both
        fit.keep_checkpoints = 0;
        fit.epochs = 4;
        if (options.communicator->rank() == 0) return;
        fit.stop = &stop;
        fit.on_step = [&](const train::StepEvent& event) { stop = event.position.step >= 13; };
      }));
  for (const Trained& rank : trained) EXPECT_EQ(rank.result.position.step, 15);
  expect_equal_ranks(trained);
  EXPECT_EQ(
      different_tensors(load_checkpoint(folder / "last.safetensors").tensors, trained.front().state.tensors),
      std::vector<std::string>{});
  EXPECT_FALSE(std::filesystem::exists(folder / "step-00000002.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-00000006.safetensors"));
}

// Of the line in 16 bits, whose gradients overflow in the first step of the last rank.
TEST(LocalSteps, TakeTheLeastLossScale) {
  std::vector<Checkpoint> states(2);
  on_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    const int64_t rank = communicator->rank();
    data::Batch large = rows_between(line_batch(0), 4 * rank, 4);
    Tensor& x = large.fields.at("x");
    for (int64_t i = 0; i < x.size() && rank == 1; ++i) x.set(i, 200 * x.at(i));
    const ListSource source(row_fields(), {large, rows_between(line_batch(1), 4 * rank, 4)});
    train::TrainerOptions options = rank_options();
    options.precision = Precision::fp16;
    options.communicator = communicator;
    options.local_steps = 2;
    options.sizes = source.sizes().front();
    train::Trainer trainer(regression(), options);
    Checkpoint start = trainer.training_state();
    start.tensors.at("loss_scale").set(0, 4096);
    trainer.restore(start, "the start");
    std::vector<double> scales;
    trainer.fit(source, {.on_step = [&](const train::StepEvent&) {
                  scales.push_back(trainer.training_state().tensors.at("loss_scale").at(0));
                }});
    EXPECT_EQ(scales, (std::vector<double>{rank == 0 ? 4096.0 : 2048.0, 2048}));
    states[static_cast<size_t>(rank)] = trainer.training_state();
  });
  EXPECT_EQ(different_tensors(states[0].tensors, states[1].tensors), std::vector<std::string>{});
  EXPECT_EQ(states[0].tensors.at("loss_scale_good_steps").at(0), 1);  // 2 of the one, 1 of the other
}

// The third step averages, and the second row of the last rank is none.
TEST(LocalSteps, LeaveAllRanksWhereTheyWereWhenOneMustNotGoOn) {
  on_ranks(2, [](const std::shared_ptr<Communicator>& communicator) {
    const int64_t rank = communicator->rank();
    std::vector<data::Batch> batches;
    for (int64_t step = 0; step < 3; ++step) batches.push_back(rows_between(line_batch(step), 4 * rank, 4));
    if (rank == 1) batches.back().fields.at("x").set(3, std::numeric_limits<double>::quiet_NaN());
    const ListSource source(row_fields(), batches);
    train::TrainerOptions options = rank_options();
    options.communicator = communicator;
    options.local_steps = 3;
    options.sizes = source.sizes().front();
    train::Trainer trainer(regression(), options);
    Checkpoint before;
    train::FitOptions fit;
    fit.on_step = [&](const train::StepEvent&) { before = trainer.training_state(); };
    EXPECT_THROW(trainer.fit(source, fit), Error);
    EXPECT_EQ(before.metadata.at("step"), "2");
    EXPECT_EQ(different_tensors(before.tensors, trainer.training_state().tensors),
              std::vector<std::string>{});
  });
}

int64_t exchanges_of(train::StepKind kind, const train::StepOptions& options) {
  const train::StepGraph step = train::build_training_step(tiny_resnet(), options, kind);
  verify(*step.graph);
  return std::count_if(step.graph->nodes().begin(), step.graph->nodes().end(), [](const auto& node) {
    return node->schema().operator_class == OperatorClass::communication;
  });
}

// An average has one exchange for the measures' sums, one for the means, and one for whether all go on.
TEST(LocalSteps, ExchangeNothingBetweenAverages) {
  const train::StepOptions options{
      .accumulate = 2, .clip_norm = 1, .ema_decay = 0.9, .ranks = {.count = 2}, .local_steps = 4};
  EXPECT_EQ(exchanges_of(train::StepKind::accumulating, options), 0);
  EXPECT_EQ(exchanges_of(train::StepKind::updating, options), 0);
  EXPECT_EQ(exchanges_of(train::StepKind::averaging, options), 3);
}

TEST(LocalSteps, RefuseWhatWaitsForOtherRanks) {
  const auto refused = [](train::StepOptions options, const char* name) {
    options.local_steps = 2;
    options.ranks.count = 2;
    EXPECT_ERROR(train::build_training_step(tiny_perceptron(), options), ErrorCode::invalid_argument,
                 "local_steps", name);
  };
  refused({.gradient_delay = 1}, "gradient_delay");
  refused({.shard_optimizer = true}, "shard_optimizer");
  refused({.ranks = {.batch_norm_ranks = 0}}, "batch_norm_ranks");
  EXPECT_ERROR(train::build_training_step(tiny_perceptron(), {.local_steps = 0}), ErrorCode::invalid_argument,
               "local_steps is 0");
}

}  // namespace
}  // namespace tessera::testing
