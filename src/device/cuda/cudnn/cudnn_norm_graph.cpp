#include "device/cuda/cudnn/cudnn_norm_graph.h"

#include "tessera/base/error.h"
#include "tessera/device/common/channel_order.h"

#include "device/cuda/cudnn/cudnn_frontend_graph.h"

namespace tessera::cuda {
namespace {

using fe::graph::Pointwise_attributes;

bool is_layer_norm(NormKind kind) {
  return kind == NormKind::layer_norm || kind == NormKind::layer_norm_gradient;
}

// The problem in cuDNN's terms.
class NormGraph {
 public:
  NormGraph(CudnnGraph& graph, const NormProblem& problem) : graph_(graph), problem_(problem) {
    // cuDNN's channels come second. A row of layer norm is all channels of an image of one pixel.
    x_ = backend::channels_second(problem.x);
    while (x_.size() < 4) x_.insert(x_.begin() + 2, 1);
    channels_.assign(x_.size(), 1);
    channels_[1] = x_[1];
    statistics_ = channels_;
    if (is_layer_norm(problem.kind)) {
      statistics_.assign(x_.size(), 1);
      statistics_[0] = x_[0];
    }
  }

  void describe() {
    graph_.set_type(problem_.type);
    switch (problem_.kind) {
      case NormKind::batch_norm:
        batch_norm();
        break;
      case NormKind::batch_norm_gradient:
        batch_norm_gradient();
        break;
      case NormKind::layer_norm:
        layer_norm();
        break;
      case NormKind::layer_norm_gradient:
        layer_norm_gradient();
        break;
    }
  }

 private:
  using Operand = NormOperand;

  static fe::graph::Tensor_attributes& shape(fe::graph::Tensor_attributes& attributes,
                                             const std::vector<int64_t>& dims) {
    return attributes.set_dim(dims).set_stride(backend::channels_last_strides(dims));
  }

  GraphTensor tensor(Operand operand) {
    fe::graph::Tensor_attributes attributes;
    return graph_.tensor(shape(attributes.set_uid(static_cast<int64_t>(operand)), x_));
  }
  GraphTensor numbers(Operand operand, const std::vector<int64_t>& dims) {
    fe::graph::Tensor_attributes attributes;
    attributes.set_uid(static_cast<int64_t>(operand)).set_data_type(fe::DataType_t::FLOAT);
    return graph_.tensor(shape(attributes, dims));
  }
  GraphTensor epsilon() { return graph_.tensor(static_cast<float>(problem_.epsilon)); }

  void finish(const GraphTensor& result, Operand operand) {
    shape(result->set_output(true).set_uid(static_cast<int64_t>(operand)), x_);
  }
  void finish_numbers(const GraphTensor& result, Operand operand, const std::vector<int64_t>& dims) {
    result->set_output(true).set_uid(static_cast<int64_t>(operand)).set_data_type(fe::DataType_t::FLOAT);
    shape(*result, dims);
  }

  GraphTensor pointwise(const GraphTensor& a, const GraphTensor& b, fe::PointwiseMode_t mode) {
    GraphTensor result = graph_.pointwise(a, b, Pointwise_attributes().set_mode(mode));
    shape(*result, x_);
    return result;
  }

  void batch_norm() {
    GraphTensor small = epsilon();
    auto [y, mean, inverse, next_mean, next_variance] = graph_.batchnorm(
        tensor(Operand::x), numbers(Operand::scale, channels_), numbers(Operand::bias, channels_),
        fe::graph::Batchnorm_attributes().set_epsilon(small));
    finish_numbers(mean, Operand::mean, statistics_);
    finish_numbers(inverse, Operand::inverse_deviation, statistics_);
    GraphTensor result = y;
    shape(*result, x_);
    if (problem_.residual) result = pointwise(result, tensor(Operand::residual), fe::PointwiseMode_t::ADD);
    if (problem_.relu) {
      result = graph_.pointwise(result, Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    }
    finish(result, Operand::result);
  }

  void batch_norm_gradient() {
    GraphTensor dy = tensor(Operand::dy);
    if (problem_.sum) dy = pointwise(dy, tensor(Operand::dy2), fe::PointwiseMode_t::ADD);
    if (problem_.mask) dy = pointwise(dy, tensor(Operand::relu), fe::PointwiseMode_t::RELU_BWD);
    finish_gradients(graph_.batchnorm_backward(
        dy, tensor(Operand::x), numbers(Operand::scale, channels_),
        fe::graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(
            numbers(Operand::mean, statistics_), numbers(Operand::inverse_deviation, statistics_))));
  }

  void layer_norm() {
    GraphTensor small = epsilon();
    auto [y, mean, inverse] = graph_.layernorm(
        tensor(Operand::x), numbers(Operand::scale, channels_), numbers(Operand::bias, channels_),
        fe::graph::Layernorm_attributes().set_forward_phase(fe::NormFwdPhase_t::TRAINING).set_epsilon(small));
    finish(y, Operand::result);
    finish_numbers(mean, Operand::mean, statistics_);
    finish_numbers(inverse, Operand::inverse_deviation, statistics_);
  }

  void layer_norm_gradient() {
    finish_gradients(graph_.layernorm_backward(
        tensor(Operand::dy), tensor(Operand::x), numbers(Operand::scale, channels_),
        fe::graph::Layernorm_backward_attributes().set_saved_mean_and_inv_variance(
            numbers(Operand::mean, statistics_), numbers(Operand::inverse_deviation, statistics_))));
  }

  void finish_gradients(const std::array<GraphTensor, 3>& gradients) {
    finish(gradients[0], Operand::dx);
    finish_numbers(gradients[1], Operand::dscale, channels_);
    finish_numbers(gradients[2], Operand::dbias, channels_);
  }

  CudnnGraph& graph_;
  const NormProblem& problem_;
  std::vector<int64_t> x_;
  std::vector<int64_t> channels_;
  std::vector<int64_t> statistics_;
};

}  // namespace

std::string NormProblem::key() const {
  return fmt::format("norm {} {} {} {:a} {}{}{}{}{}", static_cast<int>(kind), to_string(type),
                     fmt::join(x, ","), epsilon, residual, relu, sum, mask, deterministic);
}

PlanProblem NormProblem::plan_problem() const {
  return {.key = key(),
          .without_varying_sums = deterministic,
          .describe = [problem = *this](CudnnGraph& graph) { NormGraph(graph, problem).describe(); }};
}

}  // namespace tessera::cuda
