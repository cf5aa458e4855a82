// Optimizers: rules that append the update of one parameter to the graph of the training step.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::optim {

// What a rule sees of one parameter, or of some of its rows, or of a rank's part of it.
class UpdateContext {
 public:
  // With `rows`, int[n], the gradient is [n, ...] of those rows, of which none stands twice; negative ones
  // are no rows. Where the variable is a shard, parameter and gradient are this rank's part of it.
  UpdateContext(nn::Context& context, const nn::Variable& variable, Value* parameter, Value* gradient,
                Value* learning_rate, Value* step, Value* rows = nullptr);

  Value* parameter() const { return rows_of(parameter_); }  // fp32, shaped like the gradient
  Value* gradient() const { return gradient_; }             // fp32, of the mean loss
  Value* learning_rate() const { return learning_rate_; }   // fp32 scalar
  Value* step() const { return step_; }                     // fp32 scalar: 1 at the first update
  // False for biases and normalization, which neither decay nor take a trust ratio.
  bool decays() const { return variable_.decays; }
  // A state shaped like the parameter, named "<parameter>/<suffix>", zero at first; of it the rows, or the
  // rank's part.
  Value* state(const std::string& suffix);
  void update(Value* state, Value* next);
  // Euclidean norms, scalars, of whole tensors of which these, shaped like the gradient, are what is seen
  // here. Of the rows of a table there are none. Those that are asked for together travel together.
  std::vector<Value*> norms(const std::vector<Value*>& tensors);
  // The sums over ranks that norms() made, in its order: each may wait for those before it.
  const std::vector<Node*>& sums_over_ranks() const { return sums_over_ranks_; }
  // The whole parameter, or the rank's part of it, in its own type, after `next` was put in its place.
  Value* whole(Value* next) const { return with_rows(parameter_, next); }

 private:
  Value* rows_of(Value* table) const;  // in fp32
  Value* with_rows(Value* table, Value* next) const;

  nn::Context& context_;
  const nn::Variable& variable_;
  Value* parameter_;
  Value* gradient_;
  Value* learning_rate_;
  Value* step_;
  Value* rows_;
  Value* readable_rows_ = nullptr;         // none of them negative
  std::map<const Value*, Value*> tables_;  // rows of a state -> the state
  std::vector<Node*> sums_over_ranks_;
};

struct Optimizer {
  std::string name;
  double learning_rate = 0.1;  // the base rate that a schedule scales
  bool needs_step = false;
  bool elementwise = false;  // what becomes of an element depends on no other one: rows may be updated alone
  // What an element depends on beside itself are UpdateContext::norms(): parts may be updated each by its
  // rank. Elementwise ones may in any case.
  bool by_norms = false;
  // Returns the parameter's new value; updates its states.
  std::function<Value*(UpdateContext& update)> apply;
};

// v = momentum*v + g (+ weight_decay*w); w -= rate * (nesterov ? g + momentum*v : v). As torch.optim.SGD.
struct SgdOptions {
  double learning_rate = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};
Optimizer sgd(const SgdOptions& options = {});

// Kingma and Ba 2015, with bias correction. Adam adds weight_decay*w to the gradient; AdamW (Loshchilov and
// Hutter 2019) shrinks the weight by rate*weight_decay instead.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};
Optimizer adam(const AdamOptions& options = {});
Optimizer adamw(const AdamOptions& options = {});

// Duchi et al. 2011 as torch.optim.Adagrad: s = s + g^2; w -= rate * g / (sqrt(s) + epsilon).
struct AdagradOptions {
  double learning_rate = 0.01;
  double epsilon = 1e-10;
  double weight_decay = 0;
};
Optimizer adagrad(const AdagradOptions& options = {});

// You et al. 2020: the AdamW direction, scaled per parameter by |w| / |direction| (1 where either is zero).
// Gradients are not normalized globally here; combine with clipping for that.
struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  bool trust_all = false;  // trust ratios also for parameters that do not decay (NVLAMB)
};
Optimizer lamb(const LambOptions& options = {});

// You et al. 2017 as in the MLPerf ResNet-50 reference: trust = eta*|w| / (|g| + weight_decay*|w| + epsilon)
// for parameters that decay, 1 for the rest; v = momentum*v + rate*trust*(g + weight_decay*w); w -= v.
struct LarsOptions {
  double learning_rate = 10;
  double momentum = 0.9;
  double weight_decay = 5e-5;
  double eta = 0.001;
  double epsilon = 1e-9;
  bool nesterov = false;  // w -= momentum*v + rate*trust*(g + weight_decay*w)
};
Optimizer lars(const LarsOptions& options = {});

// Tieleman and Hinton 2012 as torch.optim.RMSprop: s = alpha*s + (1-alpha)*g^2; v = momentum*v +
// g/(sqrt(s)+epsilon); w -= rate*v. Centerd (Graves 2013): sqrt(s - a^2), a = alpha*a + (1-alpha)*g.
struct RmspropOptions {
  double learning_rate = 0.01;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  bool centered = false;
};
Optimizer rmsprop(const RmspropOptions& options = {});

}  // namespace tessera::optim
