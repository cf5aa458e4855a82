// What a model says, made ready for training.
#pragma once

#include <memory>

#include "tessera/program/module.h"

namespace tessera::onnx {

// Changes what exporters left for inference alone:
// - a copy of an initializer is one of its own: exporters write equal contents once, and share them by
// Identity;
// - running statistics are their layer's own, whatever else was equal to them;
// - the probabilities that a last Softmax makes are given as its operand, the logits.
std::shared_ptr<const program::Module> ready_for_training(const program::Module& module);

}  // namespace tessera::onnx
