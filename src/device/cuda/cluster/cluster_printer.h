// The work of print_cluster: what is read and written, and the text of one step of the loop.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/device/common/cluster_body.h"

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

// What a step reads of an operand, before it computes.
struct ClusterLoad {
  size_t input = 0;         // of the body
  std::string name;         // that the step's work knows it by
  std::string type;         // of a variable that holds it
  std::string expression;   // reads it, for the element `e`, whose coordinates may be asked for
  bool per_column = false;  // the same in all rows: in whatever axis but the innermost
};

// An ending reduction.
struct ClusterReduction {
  const Node* node = nullptr;
  size_t output = 0;      // of the body
  std::string operation;  // in kernels/reduce.cuh
};

class ClusterPrinter {
 public:
  // Throws Error(unsupported) when the body is no cluster.
  explicit ClusterPrinter(const Graph& body);

  const backend::IterationSpace& space() const { return space_; }
  const std::vector<ClusterReduction>& reductions() const { return reductions_; }
  bool is_reduction(size_t output) const;
  int vector() const { return vector_; }  // elements of one step
  std::string index_type() const;
  bool may_overwrite(size_t output, size_t input) const;

  // "const float* x0, half* y0": the pointers that the step reads and writes; `arguments` receives the same.
  std::string parameters(std::vector<Argument>& arguments) const;
  // Whether all operands are walked through from the first element to the last, but for single numbers, and
  // the reductions, where there are any, are over all elements.
  bool is_flat() const;
  // Statements that set the coordinates `c0`, `c1`, ... of the element `e`; empty where no operand needs
  // them.
  std::string coordinates_of_element() const;
  // The step: loads, computes and stores `vector()` elements from `e` on; the values to reduce are added to
  // `r0`, `r1`, ..., arrays of `vector()` accumulators, or of one with `rows`.
  std::string step(bool rows) const;
  // The parts of a step: what it reads, what it computes, and what it stores.
  std::vector<ClusterLoad> loads() const;
  std::string work(bool rows) const;  // leaves output n in `qn`
  // `function` is what stores, such as "store<V>".
  std::string stores(std::string_view function) const;

  // Whether the step reads the input at all, if only to draw random numbers by it.
  bool reads(size_t input) const { return operands_[input].used || operands_[input].counter; }

 private:
  struct Operand {
    bool used = false;     // as an element of the iteration
    bool counter = false;  // of random numbers
    bool dense = false;    // walked through exactly as an output
    bool pack = false;     // the innermost axis is walked through
  };

  void check_types() const;
  void find_reductions();
  void find_shape();
  void find_operands();
  void choose_vector();
  bool needs_coordinates() const;
  std::string offset_of(size_t input) const;
  std::string name_of(const Value* value) const;
  std::string expression(const Node& node) const;
  std::string random_numbers() const;

  const Graph& body_;
  Shape shape_;
  std::vector<ClusterReduction> reductions_;
  backend::IterationSpace space_;
  std::vector<Operand> operands_;                     // beside the body's inputs
  std::unordered_map<const Value*, size_t> numbers_;  // of what nodes make
  int vector_ = 1;
};

}  // namespace tessera::cuda
