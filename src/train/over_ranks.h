// What the steps of several ranks exchange; of one rank, nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tessera/compile/communicator.h"
#include "tessera/nn/task.h"
#include "tessera/ops/functions.h"

namespace tessera::train {

class OverRanks {
 public:
  explicit OverRanks(const nn::Ranks& ranks) : ranks_(ranks) {}

  // Of each value over all ranks. Here as below they travel together.
  std::vector<Value*> reduced(std::vector<Value*> values, const std::string& reduction = "sum") const;
  Value* sum(Value* value) const { return reduced({value}).front(); }
  // Of each value, [ranks * n, ...], this rank's [n, ...] of the sum over all ranks.
  std::vector<Value*> scattered(std::vector<Value*> values) const;
  // The rows of all ranks.
  std::vector<Value*> gathered(std::vector<Value*> rows) const;

  int64_t count() const { return ranks_.count; }

 private:
  std::vector<Value*> exchanged(const std::string& collective, std::vector<Value*> values,
                                Attributes attributes = {}) const;

  nn::Ranks ranks_;
};

// Values of a step that travel together, so that ranks wait for each other once. Where each was, its sum over
// all ranks comes.
class Exchange {
 public:
  explicit Exchange(const OverRanks& ranks) : ranks_(ranks) {}

  // The value stays where it is until make().
  void add(Value*& value) { places_.push_back(&value); }
  // Sums and weights add up over ranks, and so all see the same.
  void add_measures(std::vector<nn::Measure>& measures);
  // What the network keeps of the batches, such as running statistics, becomes the mean of the ranks': the
  // first so many updates of the graph, but for states of rows, which each rank has of its own.
  void add_states(Graph& graph, size_t count, const std::set<const Value*>& of_rows);

  void make();

 private:
  struct Mean {
    size_t update;
    Value* share;  // which this rank has in it
  };

  const OverRanks& ranks_;
  std::vector<Value**> places_;
  Graph* graph_ = nullptr;  // with the states
  std::vector<Mean> means_;
};

// What ranks do next, all of them once one says so.
struct Agreement {
  bool stop = false;
  bool save = false;
};

// By one exchange, for at each all ranks meet on the host. Null: there are no others.
Agreement agreed(Communicator* communicator, const Agreement& own);

// Whether a node of the graph waits for other ranks.
bool communicates(const Graph& graph);

}  // namespace tessera::train
