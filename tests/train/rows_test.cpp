// Tables that are updated by the rows that a batch reads.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/nn/layers.h"
#include "tessera/train/step.h"

#include "support/compare.h"
#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

constexpr int64_t kWidth = 3;
constexpr int64_t kReads = 6;

struct TableTask {
  int64_t entries = 8;
  bool by_rows = true;
  DataType type = DataType::fp32;
};

// Two look-ups in one table, of which the means are compared with targets.
nn::Task table_task(const TableTask& options) {
  const SymbolicShape reads{kReads};
  return {.name = "table",
          .network = "table",
          .inputs = {{"left", {DataType::int32, reads}},
                     {"right", {DataType::int64, {2, kReads / 2}}},
                     {"targets", {DataType::fp32, {kReads, kWidth}}}},
          .training = [=](nn::Context& context, const nn::Values& in) -> nn::Training {
            Value* table = context.variable({.name = "table",
                                             .shape = {options.entries, kWidth},
                                             .initializer = nn::normal(1),
                                             .data_type = options.type,
                                             .updates_rows = options.by_rows});
            Value* right = ops::reshape(ops::gather(table, in["right"]), {kReads, kWidth});
            Value* sum = ops::add(ops::cast(ops::gather(table, in["left"]), DataType::fp32),
                                  ops::cast(right, DataType::fp32));
            return {.objectives = {nn::mean_of("error", ops::square(ops::subtract(sum, in["targets"])))}};
          }};
}

Feeds table_batch(double target = 1) {
  return {{"left", Tensor::from<int32_t>({kReads}, {3, 1, 3, 3, 5, 1})},
          {"right", Tensor::from<int64_t>({2, kReads / 2}, {1, 6, 1, 6, 3, 6})},
          {"targets", Tensor::full(DataType::fp32, {kReads, kWidth}, target)},
          {"learning_rate", Tensor::scalar(DataType::fp32, 0.1)}};
}

train::StepOptions step_with(const optim::Optimizer& optimizer) {
  train::StepOptions options;
  options.phase.groups = {{.optimizer = optimizer}};
  return options;
}

class TableTraining {
 public:
  TableTraining(const TableTask& task, const train::StepOptions& options,
                const std::shared_ptr<Device>& device = Device::cpu())
      : variables_(std::make_shared<Variables>(device)) {
    const train::StepGraph step = train::build_training_step(table_task(task), options);
    train::initialize_variables(*variables_, step.variables, 1);
    CompileOptions compiling;
    compiling.passes.precision = options.precision;
    executable_ = compile(*step.graph, device, compiling);
    executable_->bind(variables_);
  }
  double step(const Feeds& batch = table_batch()) { return train::mean_of(executable_->run(batch), "error"); }
  Tensor get(const std::string& name) const { return variables_->get(name); }
  const Executable& executable() const { return *executable_; }

 private:
  std::shared_ptr<Variables> variables_;
  std::unique_ptr<Executable> executable_;
};

// One rounding of each sum falls otherwise where duplicates are added up first.
constexpr double kRounding = 1e-6;

TEST(Rows, AreUpdatedAsInAWholeTable) {
  const train::StepOptions options = step_with(optim::sgd({.learning_rate = 0.1, .momentum = 0}));
  for (const std::shared_ptr<Device>& device : {Device::reference(), Device::cpu()}) {
    TableTraining rows({.by_rows = true}, options, device);
    TableTraining whole({.by_rows = false}, options, device);
    for (int step = 0; step < 5; ++step) EXPECT_NEAR(rows.step(), whole.step(), kRounding);
    expect_close(rows.get("table"), whole.get("table"), {kRounding, kRounding});
  }
}

// The first step of Adam moves what it touches by the rate, whatever the gradient: rows that nothing read
// stay.
TEST(Rows, OthersKeepTheirValuesAndTheirMoments) {
  const optim::Optimizer adam = optim::adam({.learning_rate = 0.1, .weight_decay = 0.5});
  TableTraining rows({}, step_with(adam));
  const Tensor before = rows.get("table");
  for (int step = 0; step < 3; ++step) rows.step();
  const Tensor after = rows.get("table");
  const Tensor moment = rows.get("table/first_moment");
  for (int64_t row = 0; row < 8; ++row) {
    const bool read = row == 1 || row == 3 || row == 5 || row == 6;
    for (int64_t i = row * kWidth; i < (row + 1) * kWidth; ++i) {
      EXPECT_EQ(after.at(i) != before.at(i), read) << row;
      EXPECT_EQ(moment.at(i) != 0, read) << row;
    }
  }
}

TEST(Rows, OfReadPlacesMatchAdamOnAWholeTable) {
  const optim::Optimizer adam = optim::adam({.learning_rate = 0.01});
  TableTraining rows({.by_rows = true}, step_with(adam));
  TableTraining whole({.by_rows = false}, step_with(adam));
  for (int step = 0; step < 5; ++step) EXPECT_NEAR(rows.step(), whole.step(), kRounding);
  expect_close(rows.get("table"), whole.get("table"),
               {1e-5, 1e-5});  // the moments' rounding, over their root
}

// Of two tables only the second is read, which must get the gradient that is its own.
TEST(Rows, OfATableThatNothingReadsStay) {
  nn::Task task = table_task({});
  task.training = [inner = task.training](nn::Context& context, const nn::Values& in) {
    context.variable(
        {.name = "unread", .shape = {4, kWidth}, .initializer = nn::ones(), .updates_rows = true});
    return inner(context, in);
  };
  const train::StepOptions options = step_with(optim::sgd({.learning_rate = 0.1, .momentum = 0}));
  const train::StepGraph step = train::build_training_step(task, options);
  const auto updates = step.graph->updates();
  EXPECT_TRUE(std::none_of(updates.begin(), updates.end(),
                           [](const auto& update) { return update.state->name() == "unread"; }));
  EXPECT_TRUE(std::any_of(updates.begin(), updates.end(),
                          [](const auto& update) { return update.state->name() == "table"; }));
}

TEST(Rows, StayWhereTheStepIsNotSound) {
  train::StepOptions options = step_with(optim::adam({.learning_rate = 0.1}));
  options.halting = true;
  TableTraining rows({}, options);
  rows.step();
  const Tensor before = rows.get("table");
  const Tensor moment = rows.get("table/second_moment");
  rows.step(table_batch(std::numeric_limits<double>::quiet_NaN()));
  rows.step();  // halted
  EXPECT_TRUE(rows.get("table").identical(before));
  EXPECT_TRUE(rows.get("table/second_moment").identical(moment));
}

TEST(Rows, AreClippedAveragedAndScaled) {
  train::StepOptions options = step_with(optim::sgd({.learning_rate = 0.1, .momentum = 0}));
  options.clip_norm = 0.1;
  options.ema_decay = 0.5;
  TableTraining rows({.by_rows = true}, options);
  TableTraining whole({.by_rows = false}, options);
  for (int step = 0; step < 3; ++step) EXPECT_NEAR(rows.step(), whole.step(), kRounding);
  for (const char* name : {"table", "ema/table"})
    expect_close(rows.get(name), whole.get(name), {kRounding, kRounding});
}

TEST(Rows, ThatAreAveragedWholeAreTold) {
  const auto told = [](double decay, bool by_rows) {
    ::testing::internal::CaptureStderr();
    const train::Trainer trainer(table_task({.entries = 77, .by_rows = by_rows}),
                                 {.device = Device::cpu(), .ema_decay = decay});
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string warning = told(0.5, true);
  for (const char* words : {"'table'", "77 rows", "ema_decay"})
    EXPECT_NE(warning.find(words), std::string::npos) << warning;
  EXPECT_EQ(told(0, true), "");
  EXPECT_EQ(told(0.5, false), "");
}

TEST(Rows, MayBeOfSixteenBits) {
  const train::StepOptions options = step_with(optim::sgd({.learning_rate = 0.1, .momentum = 0}));
  TableTraining rows({.by_rows = true, .type = DataType::bf16}, options);
  TableTraining whole({.by_rows = false, .type = DataType::bf16}, options);
  rows.step();
  whole.step();
  EXPECT_EQ(rows.get("table").data_type(), DataType::bf16);
  // The gradient of the whole table is rounded to 16 bits; that of the rows is not: a step of 2^-8 of each.
  expect_close(rows.get("table"), whole.get("table"), {1.0 / 128, 1.0 / 128});
}

// The memory of a step, and what it updates in place, say what it costs: nothing grows with the table.
void expect_cost_of_the_batch(const std::string& device) {
  train::StepOptions options = step_with(optim::adam({.learning_rate = 0.1}));
  options.clip_norm = 1;
  options.halting = true;
  int64_t bytes = 0;
  for (const int64_t entries : {1000, 1000000}) {
    const train::StepGraph step = train::build_training_step(table_task({.entries = entries}), options);
    const auto executable = compile(*step.graph, Device::open(device));
    EXPECT_LT(executable->memory_plan().peak_bytes, entries * kWidth);
    if (bytes != 0) {
      EXPECT_EQ(executable->memory_plan().peak_bytes, bytes);
    }
    bytes = executable->memory_plan().peak_bytes;
  }
}

TEST(Rows, CostTheBatchAndNotTheTable) {
  expect_cost_of_the_batch("cpu");
}

TEST(Rows, CostTheBatchOnAGpuToo) {
  try {
    Device::open("cuda:plan-h100");
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ErrorCode::unsupported);
    GTEST_SKIP() << "built without the CUDA backend";
  }
  expect_cost_of_the_batch("cuda:plan-h100");
}

TEST(Rows, AreRefusedWhereTheyCannotBe) {
  const auto build = [](train::StepOptions options) {
    return train::build_training_step(table_task({}), options);
  };
  EXPECT_ERROR(build(step_with(optim::lamb())), ErrorCode::invalid_argument, "'table' is updated by rows",
               "lamb");
  train::StepOptions accumulating = step_with(optim::sgd());
  accumulating.accumulate = 2;
  EXPECT_ERROR(build(accumulating), ErrorCode::invalid_argument, "'table' is updated by rows", "accumulated");
  nn::Task reading = table_task({});
  reading.training = [inner = reading.training](nn::Context& context, const nn::Values& in) {
    nn::Training training = inner(context, in);
    Value* decay = ops::reduce_sum(ops::square(context.graph().find_input("table")));
    training.objectives[0].sum = ops::add(training.objectives[0].sum, decay);
    return training;
  };
  EXPECT_ERROR(train::build_training_step(reading, step_with(optim::sgd())), ErrorCode::invalid_argument,
               "'table' is updated by rows", "square");
}

}  // namespace
}  // namespace tessera::testing
