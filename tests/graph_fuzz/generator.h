// The parts of random_graph(): choices, inputs, and one builder per class of operators.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "graph_fuzz/random_graph.h"

namespace tessera::testing {

// Every node is run when it is made, so that only sensible ones stay.
class Generator {
 public:
  Generator(uint64_t seed, bool frozen)
      : random_(seed, 77), frozen_(frozen), graph_(std::make_unique<Graph>("random")) {}
  RandomGraph make();

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(counter_++, static_cast<uint64_t>(bound)));
  }
  bool chance(int64_t percent) { return below(100) < percent; }
  template <typename T>
  T pick(const std::vector<T>& list) {
    return list.at(static_cast<size_t>(below(static_cast<int64_t>(list.size()))));
  }

  Value* add_input(InputRole role, const Shape& shape, double low, double high,
                   DataType type = DataType::fp32);
  void input(const Shape& shape);
  void draw_inputs();
  Value* parameter(const Shape& shape, double bound = 1, double middle = 0);
  // A state, and what it becomes; nothing becomes anything in a frozen graph.
  void update(Value* state, Value* next);

  static Shape shape_of(const Value* x) { return x->type().static_shape(); }
  static int64_t channels(const Value* x) { return shape_of(x).back(); }
  static int64_t rows(const Value* x);  // of the last axis
  Value* any();                         // one of the latest values
  Value* of_rank(int64_t rank);         // null when there is none
  Value* image();                       // of one to three spatial axes; null when there is none
  Value* partner(Value* x);             // broadcasts against x
  Value* squeeze(Value* x, const ExampleInput& range);
  Value* activation(Value* x);
  Value* normalized(Value* x);
  Value* attention(Value* x);
  Value* integers();
  ops::ConvolutionOptions windows(const Value* x, int64_t window, int64_t groups);

  // Each appends nodes and returns what they make, or null when nothing fits.
  Value* elementwise();
  Value* chain();
  Value* chosen();
  Value* casts();
  Value* integer_work();
  Value* logistic_loss();
  Value* reduction();
  Value* product();
  Value* convolution();
  Value* transposed();
  Value* norm();
  Value* pooled_norm();
  Value* pooling();
  Value* movement();
  Value* rows_to_part();
  Value* step(Value* rows);
  Value* parts();
  Value* indexing();
  Value* noise();
  Value* memory();

  void grow();
  bool compute(const Node& node);  // whether all is finite and moderate
  void spread_flat(const Node& node);
  Value* make_loss();
  void differentiate_loss(Value* loss, const std::string& name);
  void train(Value* parameter, Value* gradient);
  void add_outputs();
  void finish();

  Random random_;
  bool frozen_;
  uint64_t counter_ = 0;
  std::unique_ptr<Graph> graph_;
  std::map<std::string, Tensor> given_;
  std::unordered_map<const Value*, Tensor> computed_;
  std::vector<Value*> pool_;      // fp32, to build on
  std::vector<Value*> integers_;  // int32, to build on
  std::vector<Value*> sources_;   // to differentiate to
  std::vector<Value*> extra_;     // outputs beside the pool's
  std::vector<Graph::Update> updates_;
  std::unordered_set<const Value*> flat_;  // without a gradient
  Value* random_counter_ = nullptr;
  int64_t streams_ = 0;
};

}  // namespace tessera::testing
