#include "cli/given_inputs.h"

#include "tessera/base/error.h"
#include "tessera/data/npy.h"
#include "tessera/data/npz.h"

namespace tessera::cli {

std::map<std::string, Tensor> read_inputs(const std::vector<std::string>& given) {
  std::map<std::string, Tensor> inputs;
  for (const std::string& input : given) {
    const size_t equals = input.rfind('=');
    if (equals == std::string::npos && input.ends_with(".npz")) {
      for (auto& [name, array] : data::read_npz(input)) inputs[name] = array;
      continue;
    }
    require(equals != std::string::npos && equals > 0, ErrorCode::invalid_argument,
            "--input takes NAME=FILE, such as x=x.npy, or a file of arrays, such as x.npz, not '{}'", input);
    inputs[input.substr(0, equals)] = data::read_npy(input.substr(equals + 1));
  }
  return inputs;
}

}  // namespace tessera::cli
