// What a network says of examples: what its task serves, by name.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/source.h"

namespace tessera::train {

// How far one pass over a source goes.
struct EvaluationLimits {
  int64_t samples = 0;                      // the first so many; 0: all of an epoch
  const std::atomic<bool>* stop = nullptr;  // breaks off, with what there is, when it is set
};

// Takes a batch and what the network gave for it. Rows from batch.samples on count nothing.
using OutputReceiver = std::function<void(const data::Batch& batch, const Feeds& outputs)>;

// A row of a batch, and what was served for the batch.
struct Example {
  const data::Batch& batch;
  const Feeds& outputs;
  int64_t row = 0;
  int64_t number = 0;  // its place in the data; in the order of telling where the data has none
};

// What is served as people read it: whole lines.
class PredictionText {
 public:
  virtual ~PredictionText() = default;
  // Of each example of a batch.
  std::string tell(const data::Batch& batch, const Feeds& outputs);
  // Of all that were told so far; empty: nothing more is to be said.
  virtual std::string summary() const { return {}; }

 private:
  virtual std::string example(const Example& one) = 0;

  int64_t told_ = 0;
};
using PredictionTextMaker = std::function<std::unique_ptr<PredictionText>()>;

// Of any task: the numbers of each output, or of many the first ones. `samples` as in nn::Task.
PredictionTextMaker plain_prediction_text(std::string samples);

// How many examples the inputs of a run hold: the first axis of what a task is given counts them. `samples`
// where nothing says so.
int64_t rows_of(const RunFeeds& inputs, int64_t samples);

// What was served for all examples of a source, each output as one tensor [examples, ...].
class PredictionTable {
 public:
  // `rows` is how many the batch has, with those that only fill it. Throws Error(unsupported) naming an
  // output that has no row for each of them, or has others than in the batches before.
  void add(const data::Batch& batch, const Feeds& outputs, int64_t rows);
  Feeds outputs() const;

 private:
  struct Column {
    DataType type;
    Shape shape;  // [examples so far, ...]
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Column> columns_;
};

}  // namespace tessera::train
