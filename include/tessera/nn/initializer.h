// Starting values of parameters, a function of seed and name alone.
#pragma once

#include <functional>
#include <string>

#include "tessera/base/tensor.h"

namespace tessera::nn {

// Fans of a weight [outputs, spatial..., inputs]: how many inputs feed one output, and the other way round.
struct Fans {
  double in = 1;
  double out = 1;
};
Fans fans_of(const Shape& shape);

// Fills the tensor of a parameter, or of a state of any type, with this shape. `stream` is made from the
// parameter's name.
struct Initializer {
  std::string name;
  std::function<void(Tensor& tensor, uint64_t seed, uint64_t stream)> fill;
};

Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer normal(double deviation, double mean = 0);
Initializer truncated_normal(double deviation);  // redrawn outside two deviations
Initializer uniform(double bound);               // in [-bound, bound)
// He et al. 2015, normal with variance 2 / fan_out: what ResNets start their convolutions from.
Initializer kaiming_normal_fan_out();
// Uniform in +-1/sqrt(fan_in): the default of linear and convolution layers in PyTorch, biases included.
Initializer fan_in_uniform(double fan_in = 0);  // 0 takes the fan of the shape
// Glorot and Bengio 2010: uniform in +-sqrt(6 / (fan_in + fan_out)).
Initializer xavier_uniform();

Tensor initialize(const Initializer& initializer, const std::string& name, const Shape& shape, uint64_t seed,
                  DataType data_type = DataType::fp32);

}  // namespace tessera::nn
