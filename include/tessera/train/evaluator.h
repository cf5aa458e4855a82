// How good a network is: numbers from what it says of data that it was not trained on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/source.h"
#include "tessera/train/generation.h"
#include "tessera/train/history.h"

namespace tessera::train {

// A part of a report, as HTML below its heading.
struct ReportSection {
  std::string title;
  std::string html;
};

// Of one pass over a source. Runs on the host, beside the device.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // What the network gave for a batch: the values of the task's `evaluation` by name. Rows from batch.samples
  // on count nothing.
  virtual void add(const data::Batch& batch, const Feeds& outputs) = 0;
  // After the last batch, before results() and state(): what needs other passes of the network than the one
  // that was evaluated, with its weights as they are now, such as translations, token by token.
  virtual void finish(const Serving& /*serve*/) {}
  // Of all that was added.
  virtual Numbers results() const = 0;
  // What was added, for merge() by another evaluator of this kind, which saw another part of the data. Both
  // throw Error(unsupported) where an evaluator has none.
  virtual Feeds state() const;
  // As if that had been added here. Throws Error(invalid_argument) when it is of another kind.
  virtual void merge(const Feeds& state);
  // What a report shows of it beside its numbers.
  virtual std::vector<ReportSection> sections() const { return {}; }
};

// A tensor of another evaluator's state. Throws Error(invalid_argument) when there is none of that type.
const Tensor& state_tensor(const Feeds& state, const std::string& name, DataType type);

using EvaluatorMaker = std::function<std::unique_ptr<Evaluator>()>;

}  // namespace tessera::train
