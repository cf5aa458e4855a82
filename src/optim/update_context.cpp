#include "tessera/optim/optimizer.h"

namespace tessera::optim {

Value* UpdateContext::state(const std::string& suffix) {
  return context_.state(variable_.name + "/" + suffix, variable_.shape, nn::zeros());
}

}  // namespace tessera::optim
