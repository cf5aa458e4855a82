// A line through rows of numbers, small enough to train by hand: what the tests of asynchronous training on
// several ranks compare with.
#pragma once

#include <cmath>
#include <vector>

#include "train/rank_training.h"
#include "train/regression.h"

namespace tessera::testing {

inline constexpr int64_t kLineSteps = 7;
inline constexpr double kLineRate = 0.05;
inline constexpr double kLineMomentum = 0.9;
inline constexpr double kLineDecay = 0.01;

// The whole batch of a step: eight rows of which seven count, the last of the last rank does not.
inline data::Batch line_batch(int64_t step) {
  return rows_of(kRankBatch * step, kRankBatch, kRankBatch - 1);
}

inline data::Batch rows_between(const data::Batch& batch, int64_t first, int64_t rows) {
  data::Batch part{.sizes = {{"rows", rows}}, .samples = rows};
  for (const auto& [name, whole] : batch.fields) {
    const int64_t width = whole.size() / whole.shape()[0];
    Shape shape = whole.shape();
    shape[0] = rows;
    Tensor tensor(whole.data_type(), shape);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, whole.at(first * width + i));
    part.fields.emplace(name, tensor);
  }
  return part;
}

// Each rank's part of them, an epoch of all steps.
inline std::shared_ptr<const data::Source> line_source(int64_t ranks, int64_t rank) {
  std::vector<data::Batch> batches;
  const int64_t rows = kRankBatch / ranks;
  for (int64_t step = 0; step < kLineSteps; ++step)
    batches.push_back(rows_between(line_batch(step), rank * rows, rows));
  return std::make_shared<ListSource>(row_fields(), batches);
}

inline optim::Optimizer line_optimizer() {
  return optim::sgd({.learning_rate = kLineRate, .momentum = kLineMomentum, .weight_decay = kLineDecay});
}

// y = w x + b in fp64, and what SGD keeps: three weights and the bias, which does not decay.
struct Line {
  std::vector<double> parameters = std::vector<double>(4);
  std::vector<double> momentum = std::vector<double>(4);

  // Sums over the rows that count; the fifth is their number.
  std::vector<double> gradient_sums(const data::Batch& batch) const {
    std::vector<double> sums(5);
    const auto of = [&](const char* field, int64_t i) { return batch.fields.at(field).at(i); };
    for (int64_t row = 0; row < batch.fields.at("y").size(); ++row) {
      if (of("counts", row) == 0) continue;
      double error = parameters[3] - of("y", row);
      for (int64_t i = 0; i < 3; ++i) error += parameters[static_cast<size_t>(i)] * of("x", 3 * row + i);
      for (int64_t i = 0; i < 3; ++i) sums[static_cast<size_t>(i)] += 2 * error * of("x", 3 * row + i);
      sums[3] += 2 * error;
      sums[4] += 1;
    }
    return sums;
  }

  void update(const std::vector<double>& sums) {
    for (size_t i = 0; i < 4; ++i) {
      const double gradient = sums[i] / sums[4] + (i < 3 ? kLineDecay * parameters[i] : 0);
      momentum[i] = kLineMomentum * momentum[i] + gradient;
      parameters[i] -= kLineRate * momentum[i];
    }
  }

  static Line from(const Checkpoint& state) {
    Line line;
    for (size_t i = 0; i < 4; ++i) {
      const std::string name = i < 3 ? "line.weight" : "line.bias";
      line.parameters[i] = state.tensors.at(name).at(i < 3 ? static_cast<int64_t>(i) : 0);
    }
    return line;
  }
};

// Seven steps, each of which rounds numbers of up to four some ten times in fp32.
inline void expect_line(const Checkpoint& state, const Line& expected) {
  const Line line = Line::from(state);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(line.parameters[i], expected.parameters[i], 7 * 10 * 4 * 0x1p-24) << i;
}

// Of so many ranks on the line, what each has at the end of its epoch; `start` is what they begin with.
inline std::vector<Trained> train_line(int64_t ranks, const OptionChange& change,
                                       Checkpoint* start = nullptr) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  on_ranks(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
    train::TrainerOptions options = rank_options();
    options.optimizer = line_optimizer();
    if (ranks > 1) options.communicator = communicator;
    train::FitOptions fit;
    if (change) change(options, fit);
    const std::shared_ptr<const data::Source> source = line_source(ranks, communicator->rank());
    options.sizes = source->sizes().front();
    train::Trainer trainer(regression(), options);
    Checkpoint begun = trainer.training_state();
    if (start != nullptr && communicator->rank() == 0) *start = std::move(begun);
    Trained& own = trained[static_cast<size_t>(communicator->rank())];
    own.result = trainer.fit(*source, fit);
    own.state = trainer.training_state();
  });
  return trained;
}

}  // namespace tessera::testing
