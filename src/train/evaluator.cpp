#include "tessera/train/evaluator.h"

#include "tessera/base/error.h"

namespace tessera::train {

Feeds Evaluator::state() const {
  fail(ErrorCode::unsupported, "this evaluator has no state to be merged");
}

void Evaluator::merge(const Feeds& /*state*/) {
  fail(ErrorCode::unsupported, "this evaluator cannot be merged with others");
}

const Tensor& state_tensor(const Feeds& state, const std::string& name, DataType type) {
  const auto found = state.find(name);
  require(found != state.end() && found->second.data_type() == type, ErrorCode::invalid_argument,
          "the state of another evaluator has no '{}' of {}", name, to_string(type));
  return found->second;
}

}  // namespace tessera::train
