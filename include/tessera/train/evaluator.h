// How good a network is: numbers from what it says of data that it was not trained on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/source.h"
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
  // Of all that was added.
  virtual Numbers results() const = 0;
  // For a terminal: what the network said of each example.
  virtual std::string examples() const { return {}; }
  // What a report shows of it beside its numbers.
  virtual std::vector<ReportSection> sections() const { return {}; }
};

using EvaluatorMaker = std::function<std::unique_ptr<Evaluator>()>;

}  // namespace tessera::train
