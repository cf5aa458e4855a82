// States that hold something of each row of a batch, where a batch goes on with the rows of the one before
// it.
#pragma once

#include <string>

#include "tessera/nn/context.h"

namespace tessera::nn {

// A state that advances, fp32 [rows, ...] of the rows of this batch. Each of several ranks has that of its
// own rows, and files that of all: ranks neither average it nor need as many ranks to go on.
class RowState {
 public:
  // `shape` is static. In training and in inference it begins with zeros.
  RowState(Context& context, const std::string& name, SymbolicShape shape);

  Value* value() const { return value_; }
  // Of that shape and any floating type, at the end of the step.
  void update(Context& context, Value* next) const;

 private:
  Value* state_;  // of several ranks flat, as what they share out
  Value* value_;
};

}  // namespace tessera::nn
