#include "device/cuda/cudnn_graph.h"

#include <map>
#include <mutex>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include "tessera/base/error.h"
#include "tessera/device/common/channel_order.h"

#include "device/cuda/check.h"

namespace cudnn_frontend {
// cudnn-frontend looks its functions up here.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace tessera::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t cudnn_type(DataType type) {
  switch (type) {
    case DataType::fp32:
      return fe::DataType_t::FLOAT;
    case DataType::fp64:
      return fe::DataType_t::DOUBLE;
    case DataType::fp16:
      return fe::DataType_t::HALF;
    case DataType::bf16:
      return fe::DataType_t::BFLOAT16;
    default:
      fail(ErrorCode::unsupported, "cuDNN convolves no {}", to_string(type));
  }
}

void require_good(fe::error_t status, const char* what) {
  require(status.is_good(), ErrorCode::unsupported, "cuDNN {}: {}", what, status.get_message());
}

// cuDNN has no convolution over one axis.
std::vector<int64_t> spatial(std::vector<int64_t> values, int64_t missing) {
  if (values.size() == 1) values.insert(values.begin(), missing);
  return values;
}

// One handle for each context, for the life of the process: plans hold it.
cudnnHandle_t handle_of(const Context& context) {
  static std::mutex mutex;
  static std::map<const Context*, cudnnHandle_t> handles;
  const std::lock_guard lock(mutex);
  cudnnHandle_t& handle = handles[&context];
  if (handle == nullptr) {
    fe::cudnn_dlhandle = cudnn_library();
    context.enter();
    require(fe::detail::create_handle(&handle) == CUDNN_STATUS_SUCCESS, ErrorCode::unsupported,
            "cuDNN cannot be started on {}", context.traits().model);
    fe::detail::set_stream(handle, context.stream());
  }
  return handle;
}

class GraphPlan : public ConvolutionPlan {
 public:
  GraphPlan(Context& context, const ConvolutionProblem& problem, int64_t choice)
      : context_(context), choice_(choice) {
    handle_ = handle_of(context);
    const fe::DataType_t type = cudnn_type(problem.type);
    const bool wide = problem.type == DataType::fp64;
    const fe::DataType_t accumulator = wide ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
    graph_.set_io_data_type(type).set_intermediate_data_type(accumulator).set_compute_data_type(accumulator);
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
    build(problem);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  int64_t choices() const override { return graph_.get_execution_plan_count(); }

  void run(const ConvolutionOperands& operands, void* workspace) override {
    context_.enter();
    std::unordered_map<Tensor, void*> pack;
    const auto give = [&](const Tensor& tensor, const void* memory) {
      if (tensor != nullptr) pack[tensor] = const_cast<void*>(memory);
    };
    give(first_, operands.first);
    give(second_, operands.second);
    give(bias_, operands.bias);
    give(shortcut_, operands.shortcut);
    give(mask_, operands.mask);
    give(result_, operands.result);
    give(sums_, operands.sums);
    give(squares_, operands.squares);
    require_good(choice_ == 0 ? graph_.execute(handle_, pack, workspace)
                              : graph_.execute_plan_at_index(handle_, pack, workspace, choice_),
                 "execution");
  }

 private:
  // `shape` as the graph has it.
  static fe::graph::Tensor_attributes& describe(fe::graph::Tensor_attributes& attributes,
                                                const std::vector<int64_t>& shape) {
    std::vector<int64_t> dims = backend::channels_second(shape);
    if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
    return attributes.set_dim(dims).set_stride(backend::channels_last_strides(dims));
  }

  Tensor tensor(const char* name, const std::vector<int64_t>& shape) {
    fe::graph::Tensor_attributes attributes;
    return graph_.tensor(describe(attributes.set_name(name), shape));
  }

  void finish(const Tensor& result, const std::vector<int64_t>& shape) {
    describe(result->set_output(true), shape);
    result_ = result;
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
    first_ = tensor("x", problem.x);
    second_ = tensor("weight", problem.weight);
    Tensor y = graph_.conv_fprop(first_, second_, window<fe::graph::Conv_fprop_attributes>(problem));
    const auto add = [&](const Tensor& other) {
      describe(*y, problem.y);
      return graph_.pointwise(y, other, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    };
    if (problem.bias) {
      std::vector<int64_t> shape(problem.y.size(), 1);
      shape.back() = problem.y.back();
      bias_ = tensor("bias", shape);
      y = add(bias_);
    }
    if (problem.shortcut) {
      shortcut_ = tensor("shortcut", problem.y);
      y = add(shortcut_);
    }
    if (problem.relu) {
      y = graph_.pointwise(y, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    }
    finish(y, problem.y);
    if (problem.statistics) add_statistics(problem);
  }

  void add_statistics(const ConvolutionProblem& problem) {
    auto [sums, squares] = graph_.genstats(result_, fe::graph::Genstats_attributes());
    std::vector<int64_t> shape(problem.y.size(), 1);
    shape.back() = problem.y.back();
    for (const Tensor& statistic : {sums, squares}) {
      describe(statistic->set_output(true).set_data_type(fe::DataType_t::FLOAT), shape);
    }
    sums_ = sums;
    squares_ = squares;
  }

  void data_gradient(const ConvolutionProblem& problem) {
    first_ = tensor("dy", problem.y);
    second_ = tensor("weight", problem.weight);
    Tensor dx = graph_.conv_dgrad(first_, second_, window<fe::graph::Conv_dgrad_attributes>(problem));
    const auto combine = [&](const Tensor& other, fe::PointwiseMode_t mode) {
      describe(*dx, problem.x);
      return graph_.pointwise(dx, other, fe::graph::Pointwise_attributes().set_mode(mode));
    };
    if (problem.shortcut) {
      shortcut_ = tensor("shortcut", problem.x);
      dx = combine(shortcut_, fe::PointwiseMode_t::ADD);
    }
    if (problem.mask) {
      mask_ = tensor("mask", problem.x);
      dx = combine(mask_, fe::PointwiseMode_t::RELU_BWD);
    }
    finish(dx, problem.x);
  }

  void weight_gradient(const ConvolutionProblem& problem) {
    first_ = tensor("x", problem.x);
    second_ = tensor("dy", problem.y);
    finish(graph_.conv_wgrad(second_, first_, window<fe::graph::Conv_wgrad_attributes>(problem)),
           problem.weight);
  }

  void build(const ConvolutionProblem& problem) {
    context_.enter();
    require_good(graph_.validate(), "refuses the graph");
    require_good(graph_.build_operation_graph(handle_), "cannot describe it");
    require_good(graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "has no plan");
    std::vector<fe::NumericalNote_t> forbidden;
    if (problem.type == DataType::fp32 && !problem.tf32)
      forbidden.push_back(fe::NumericalNote_t::TENSOR_CORE);
    if (problem.deterministic) forbidden.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    graph_.deselect_numeric_notes(forbidden);
    if (choice_ == 0) {
      require_good(graph_.check_support(handle_), "supports no engine for it");
      require_good(graph_.build_plans(handle_, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE),
                   "cannot build a plan");
      require_good(graph_.get_workspace_size(workspace_bytes_), "cannot size its workspace");
    } else {
      require_good(graph_.build_plan_at_index(handle_, choice_), "cannot build this plan");
      require_good(graph_.get_workspace_size_plan_at_index(choice_, workspace_bytes_),
                   "cannot size its workspace");
    }
  }

  Context& context_;
  int64_t choice_;
  cudnnHandle_t handle_ = nullptr;
  fe::graph::Graph graph_;
  Tensor first_;
  Tensor second_;
  Tensor bias_;
  Tensor shortcut_;
  Tensor mask_;
  Tensor result_;
  Tensor sums_;
  Tensor squares_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

std::string ConvolutionProblem::key() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}{}{}{}{}{}{}", static_cast<int>(kind), to_string(type),
                     fmt::join(x, ","), fmt::join(weight, ","), fmt::join(y, ","), fmt::join(strides, ","),
                     fmt::join(padding_low, ","), fmt::join(padding_high, ","), fmt::join(dilations, ","),
                     groups, tf32, deterministic, bias, shortcut, relu, mask, statistics);
}

std::shared_ptr<ConvolutionPlan> convolution_plan(Context& context, const ConvolutionProblem& problem,
                                                  int64_t choice) {
  struct Known {
    std::shared_ptr<ConvolutionPlan> plan;
    std::string refusal;
  };
  static std::mutex mutex;
  // Never destroyed: at the end of the process cuDNN may be gone before.
  static auto& plans = *new std::map<std::string, Known>;
  const std::lock_guard lock(mutex);
  const std::string key = fmt::format("{} {} {}", static_cast<const void*>(&context), choice, problem.key());
  const auto [known, added] = plans.try_emplace(key);
  if (added) {
    try {
      known->second.plan = std::make_shared<GraphPlan>(context, problem, choice);
    } catch (const Error& error) {
      known->second.refusal = error.what();
    } catch (const std::exception& error) {
      known->second.refusal = fmt::format("cuDNN: {}", error.what());
    }
  }
  require(known->second.plan != nullptr, ErrorCode::unsupported, "{}", known->second.refusal);
  return known->second.plan;
}

std::string cudnn_version() {
  fe::cudnn_dlhandle = cudnn_library();
  const size_t version = fe::detail::get_backend_version();
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace tessera::cuda
