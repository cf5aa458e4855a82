// Whose graph a module is built into, and what becomes there of its weights and of what training does
// otherwise than inference.
#pragma once

#include <string>

#include "tessera/graph/graph.h"

namespace tessera::program {

class GraphOwner {
 public:
  virtual ~GraphOwner() = default;

  virtual Graph& graph() = 0;
  virtual bool trains() const = 0;
  // The variable that an fp32 constant of the module with at least one axis becomes, of its type and shape.
  // `is_statistic`: of running statistics, which no gradient changes.
  virtual Value* variable(const std::string& name, const Tensor& contents, bool is_statistic) = 0;
  // Where it trains: x [N, spatial..., C] by the statistics of the batch, from which the running ones follow.
  struct BatchNorm {
    Value* scale;  // [C], as all of them
    Value* bias;
    Value* mean;  // as variable() gave them
    Value* variance;
    double epsilon = 1e-5;
    double momentum = 0.1;  // weight of the new batch in the running statistics
  };
  virtual Value* batch_norm(const std::string& name, Value* x, const BatchNorm& norm) = 0;
  // Where it trains: with a share of the elements set to 0 and the others scaled up.
  virtual Value* dropout(Value* x, double rate) = 0;
};

}  // namespace tessera::program
