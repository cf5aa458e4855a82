#include "device/cuda/cudnn/cudnn_convolution_graph.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/device/common/channel_order.h"

#include "device/cuda/cudnn/cudnn_frontend_graph.h"

namespace tessera::cuda {
namespace {

// cuDNN has no convolution over one axis.
std::vector<int64_t> spatial(std::vector<int64_t> values, int64_t missing) {
  if (values.size() == 1) values.insert(values.begin(), missing);
  return values;
}

// Operands by number: all that a plan that was read from a file knows them by.
enum class ConvolutionOperand : int64_t { first = 1, second, bias, residual, mask, result, sums, squares };

int64_t number_of(ConvolutionOperand operand) {
  return static_cast<int64_t>(operand);
}

// The problem in cuDNN's terms.
class ConvolutionGraph {
 public:
  explicit ConvolutionGraph(CudnnGraph& graph) : graph_(graph) {}

  void describe(const ConvolutionProblem& problem) {
    graph_.set_type(problem.type);
    switch (problem.kind) {
      case ConvolutionKind::forward:
        forward(problem);
        break;
      case ConvolutionKind::data_gradient:
        data_gradient(problem);
        break;
      case ConvolutionKind::weight_gradient:
        weight_gradient(problem);
        break;
    }
  }

 private:
  // `shape` as the graph has it.
  static fe::graph::Tensor_attributes& describe(fe::graph::Tensor_attributes& attributes,
                                                const std::vector<int64_t>& shape) {
    std::vector<int64_t> dims = backend::channels_second(shape);
    if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
    return attributes.set_dim(dims).set_stride(backend::channels_last_strides(dims));
  }

  GraphTensor input(ConvolutionOperand operand, const std::vector<int64_t>& shape) {
    fe::graph::Tensor_attributes attributes;
    return graph_.tensor(describe(attributes.set_uid(number_of(operand)), shape));
  }

  static void finish(const GraphTensor& result, const std::vector<int64_t>& shape) {
    describe(result->set_output(true).set_uid(number_of(ConvolutionOperand::result)), shape);
  }

  template <typename Attributes>
  static Attributes window(const ConvolutionProblem& problem) {
    return Attributes()
        .set_pre_padding(spatial(problem.padding_low, 0))
        .set_post_padding(spatial(problem.padding_high, 0))
        .set_stride(spatial(problem.strides, 1))
        .set_dilation(spatial(problem.dilations, 1));
  }

  void forward(const ConvolutionProblem& problem) {
    GraphTensor y = graph_.conv_fprop(input(ConvolutionOperand::first, problem.x),
                                      input(ConvolutionOperand::second, problem.weight),
                                      window<fe::graph::Conv_fprop_attributes>(problem));
    const auto add = [&](const GraphTensor& other) {
      describe(*y, problem.y);
      return graph_.pointwise(y, other, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    };
    if (problem.bias) {
      std::vector<int64_t> shape(problem.y.size(), 1);
      shape.back() = problem.y.back();
      y = add(input(ConvolutionOperand::bias, shape));
    }
    if (problem.residual) y = add(input(ConvolutionOperand::residual, problem.y));
    if (problem.activation != ConvolutionActivation::none) y = graph_.pointwise(y, activation_of(problem));
    finish(y, problem.y);
    if (problem.statistics) add_statistics(problem, y);
  }

  static fe::graph::Pointwise_attributes activation_of(const ConvolutionProblem& problem) {
    fe::graph::Pointwise_attributes attributes;
    switch (problem.activation) {
      case ConvolutionActivation::silu:
        return attributes.set_mode(fe::PointwiseMode_t::SWISH_FWD);
      case ConvolutionActivation::sigmoid:
        return attributes.set_mode(fe::PointwiseMode_t::SIGMOID_FWD);
      default:
        break;
    }
    if (!std::isinf(problem.relu_limit))
      attributes.set_relu_upper_clip(static_cast<float>(problem.relu_limit));
    return attributes.set_mode(fe::PointwiseMode_t::RELU_FWD);
  }

  void add_statistics(const ConvolutionProblem& problem, const GraphTensor& y) {
    auto [sums, squares] = graph_.genstats(y, fe::graph::Genstats_attributes());
    std::vector<int64_t> shape(problem.y.size(), 1);
    shape.back() = problem.y.back();
    for (const GraphTensor& statistic : {sums, squares}) {
      describe(statistic->set_output(true).set_data_type(fe::DataType_t::FLOAT), shape);
    }
    sums->set_uid(number_of(ConvolutionOperand::sums));
    squares->set_uid(number_of(ConvolutionOperand::squares));
  }

  void data_gradient(const ConvolutionProblem& problem) {
    GraphTensor dx = graph_.conv_dgrad(input(ConvolutionOperand::first, problem.y),
                                       input(ConvolutionOperand::second, problem.weight),
                                       window<fe::graph::Conv_dgrad_attributes>(problem));
    const auto combine = [&](const GraphTensor& other, fe::PointwiseMode_t mode) {
      describe(*dx, problem.x);
      return graph_.pointwise(dx, other, fe::graph::Pointwise_attributes().set_mode(mode));
    };
    if (problem.residual)
      dx = combine(input(ConvolutionOperand::residual, problem.x), fe::PointwiseMode_t::ADD);
    if (problem.mask) dx = combine(input(ConvolutionOperand::mask, problem.x), fe::PointwiseMode_t::RELU_BWD);
    finish(dx, problem.x);
  }

  void weight_gradient(const ConvolutionProblem& problem) {
    const GraphTensor x = input(ConvolutionOperand::first, problem.x);
    const GraphTensor dy = input(ConvolutionOperand::second, problem.y);
    finish(graph_.conv_wgrad(dy, x, window<fe::graph::Conv_wgrad_attributes>(problem)), problem.weight);
  }

  CudnnGraph& graph_;
};

}  // namespace

std::string ConvolutionProblem::key() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}{}{}{}{} {} {}{}", static_cast<int>(kind),
                     to_string(type), fmt::join(x, ","), fmt::join(weight, ","), fmt::join(y, ","),
                     fmt::join(strides, ","), fmt::join(padding_low, ","), fmt::join(padding_high, ","),
                     fmt::join(dilations, ","), groups, tf32, deterministic, bias, residual,
                     static_cast<int>(activation), relu_limit, mask, statistics);
}

PlanProblem ConvolutionProblem::plan_problem() const {
  return {.key = key(),
          .without_tensor_cores = type == DataType::fp32 && !tf32,
          .without_varying_sums = deterministic,
          .describe = [problem = *this](CudnnGraph& graph) { ConvolutionGraph(graph).describe(problem); }};
}

PlanOperands ConvolutionOperands::numbered() const {
  return {{number_of(ConvolutionOperand::first), first}, {number_of(ConvolutionOperand::second), second},
          {number_of(ConvolutionOperand::bias), bias},   {number_of(ConvolutionOperand::residual), residual},
          {number_of(ConvolutionOperand::mask), mask},   {number_of(ConvolutionOperand::result), result},
          {number_of(ConvolutionOperand::sums), sums},   {number_of(ConvolutionOperand::squares), squares}};
}

}  // namespace tessera::cuda
