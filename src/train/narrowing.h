// Gradients in 16 bits on their way between ranks: half the bytes (Micikevicius et al., "Mixed Precision
// Training", 2018, scale them for the same reason).
//
// What is added up are sums over a rank's rows. Divided by the rows of all ranks, and times the loss scale,
// they are as large as the gradients that the rank's own graph has in 16 bits. Small gradients, such as those
// of biases and norms, stay in fp32: they take no time to speak of.
#pragma once

#include "tessera/train/step.h"

namespace tessera::train {

class Narrowing {
 public:
  // Of the options, type, sizes and ranks; the loss scale may be null.
  Narrowing(const StepOptions& options, Value* loss_scale);

  // A rank's gradient of the variable, and back again what it adds up to over the ranks.
  Value* narrowed(const nn::Variable& variable, Value* gradient) const;
  Value* widened(const nn::Variable& variable, Value* sum) const;

 private:
  bool narrows(const nn::Variable& variable) const;

  DataType type_;
  double rows_ = 1;  // of all ranks
  Value* loss_scale_;
};

}  // namespace tessera::train
