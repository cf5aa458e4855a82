#include "device/cuda/cudnn_graph.h"

#include <algorithm>
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

cudnnHandle_t new_handle(const Context& context) {
  cudnn_version();  // loads cuDNN
  context.enter();
  cudnnHandle_t handle = nullptr;
  require(fe::detail::create_handle(&handle) == CUDNN_STATUS_SUCCESS, ErrorCode::unsupported,
          "cuDNN cannot be started on {}", context.traits().model);
  return handle;
}

// What plans run with: one handle for each context, for the life of the process.
cudnnHandle_t running_handle(const Context& context) {
  static std::mutex mutex;
  static std::map<const Context*, cudnnHandle_t> handles;
  const std::lock_guard lock(mutex);
  cudnnHandle_t& handle = handles[&context];
  if (handle == nullptr) {
    handle = new_handle(context);
    fe::detail::set_stream(handle, context.stream());
  }
  return handle;
}

// What plans are built with: a handle serves one thread at a time. Kept for the next builder, as handles are
// slow to make.
class BuildingHandle {
 public:
  explicit BuildingHandle(const Context& context) : context_(context) {
    {
      const std::lock_guard lock(mutex());
      std::vector<cudnnHandle_t>& idle = idle_handles();
      if (!idle.empty()) {
        handle_ = idle.back();
        idle.pop_back();
      }
    }
    if (handle_ == nullptr) handle_ = new_handle(context);
    context.enter();
  }
  ~BuildingHandle() {
    const std::lock_guard lock(mutex());
    idle_handles().push_back(handle_);
  }
  BuildingHandle(const BuildingHandle&) = delete;
  BuildingHandle& operator=(const BuildingHandle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  std::vector<cudnnHandle_t>& idle_handles() const {
    static auto& handles = *new std::map<const Context*, std::vector<cudnnHandle_t>>;
    return handles[&context_];
  }

  const Context& context_;
  cudnnHandle_t handle_ = nullptr;
};

// Plans with one of these notes are left out.
std::vector<fe::NumericalNote_t> forbidden_notes(const ConvolutionProblem& problem) {
  std::vector<fe::NumericalNote_t> forbidden{fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
  if (problem.type == DataType::fp32 && !problem.tf32) forbidden.push_back(fe::NumericalNote_t::TENSOR_CORE);
  if (problem.deterministic) forbidden.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  return forbidden;
}

bool share_one(const std::vector<fe::NumericalNote_t>& a, const std::vector<fe::NumericalNote_t>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

// Operands by number: all that a plan that was read from a file knows them by.
enum class Operand : int64_t { first = 1, second, bias, shortcut, mask, result, sums, squares };

int64_t number_of(Operand operand) {
  return static_cast<int64_t>(operand);
}

class CudnnPlan : public ConvolutionPlan {
 public:
  CudnnPlan(Context& context, std::shared_ptr<fe::ExecutionPlan> plan, int64_t choices)
      : context_(context), handle_(running_handle(context)), plan_(std::move(plan)), choices_(choices) {}

  int64_t workspace_bytes() const override { return plan_->getWorkspaceSize(); }
  int64_t choices() const override { return choices_; }

  SavedPlan saved() const override {
    try {
      return {choices_, plan_->getJsonRepresentation()};
    } catch (const fe::cudnnException&) {
      return {choices_, ""};
    }
  }

  void run(const ConvolutionOperands& operands, void* workspace) override {
    context_.enter();
    std::vector<int64_t> numbers;
    std::vector<void*> pointers;
    const auto give = [&](Operand operand, const void* memory) {
      if (memory == nullptr) return;
      numbers.push_back(number_of(operand));
      pointers.push_back(const_cast<void*>(memory));
    };
    give(Operand::first, operands.first);
    give(Operand::second, operands.second);
    give(Operand::bias, operands.bias);
    give(Operand::shortcut, operands.shortcut);
    give(Operand::mask, operands.mask);
    give(Operand::result, operands.result);
    give(Operand::sums, operands.sums);
    give(Operand::squares, operands.squares);
    require_good(fe::detail::execute(handle_, plan_.get(), pointers, numbers, workspace), "execution");
  }

 private:
  Context& context_;
  cudnnHandle_t handle_;
  std::shared_ptr<fe::ExecutionPlan> plan_;
  int64_t choices_;
};

// The problem in cuDNN's terms, and the plans for it.
class ConvolutionGraph : private fe::graph::Graph {
 public:
  explicit ConvolutionGraph(const ConvolutionProblem& problem) {
    const fe::DataType_t type = cudnn_type(problem.type);
    const bool wide = problem.type == DataType::fp64;
    const fe::DataType_t accumulator = wide ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
    set_io_data_type(type).set_intermediate_data_type(accumulator).set_compute_data_type(accumulator);
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

  std::shared_ptr<ConvolutionPlan> build(Context& context, const ConvolutionProblem& problem,
                                         int64_t choice) {
    const BuildingHandle handle(context);
    require_good(validate(), "refuses the graph");
    require_good(build_operation_graph(handle.get()), "cannot describe it");
    require_good(create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "has no plan");
    const std::vector<fe::NumericalNote_t> forbidden = forbidden_notes(problem);
    deselect_numeric_notes(forbidden);
    std::vector<int64_t> allowed;
    for (size_t i = 0; i < plans.numeric_notes.size(); ++i) {
      if (!share_one(plans.numeric_notes[i], forbidden)) allowed.push_back(static_cast<int64_t>(i));
    }
    const auto choices = static_cast<int64_t>(allowed.size());
    if (choice == 0) {
      require_good(check_support(handle.get()), "supports no engine for it");
      require_good(build_plans(handle.get(), fe::BuildPlanPolicy_t::HEURISTICS_CHOICE),
                   "cannot build a plan");
    } else {
      require(choice < choices, ErrorCode::unsupported, "cuDNN names {} plans", choices);
      require_good(build_plan_at_index(handle.get(), allowed[static_cast<size_t>(choice)]),
                   "cannot build this plan");
    }
    // A plan knows of all its operands; the graph is not needed to run it.
    const auto built = plans.execution_plans.at(static_cast<size_t>(plans.candidate));
    return std::make_shared<CudnnPlan>(context, built, choices);
  }

 private:
  // `shape` as the graph has it.
  static fe::graph::Tensor_attributes& describe(fe::graph::Tensor_attributes& attributes,
                                                const std::vector<int64_t>& shape) {
    std::vector<int64_t> dims = backend::channels_second(shape);
    if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
    return attributes.set_dim(dims).set_stride(backend::channels_last_strides(dims));
  }

  Tensor input(Operand operand, const std::vector<int64_t>& shape) {
    fe::graph::Tensor_attributes attributes;
    return tensor(describe(attributes.set_uid(number_of(operand)), shape));
  }

  static void finish(const Tensor& result, const std::vector<int64_t>& shape) {
    describe(result->set_output(true).set_uid(number_of(Operand::result)), shape);
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
    Tensor y = conv_fprop(input(Operand::first, problem.x), input(Operand::second, problem.weight),
                          window<fe::graph::Conv_fprop_attributes>(problem));
    const auto add = [&](const Tensor& other) {
      describe(*y, problem.y);
      return pointwise(y, other, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    };
    if (problem.bias) {
      std::vector<int64_t> shape(problem.y.size(), 1);
      shape.back() = problem.y.back();
      y = add(input(Operand::bias, shape));
    }
    if (problem.shortcut) y = add(input(Operand::shortcut, problem.y));
    if (problem.relu) {
      y = pointwise(y, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    }
    finish(y, problem.y);
    if (problem.statistics) add_statistics(problem, y);
  }

  void add_statistics(const ConvolutionProblem& problem, const Tensor& y) {
    auto [sums, squares] = genstats(y, fe::graph::Genstats_attributes());
    std::vector<int64_t> shape(problem.y.size(), 1);
    shape.back() = problem.y.back();
    for (const Tensor& statistic : {sums, squares}) {
      describe(statistic->set_output(true).set_data_type(fe::DataType_t::FLOAT), shape);
    }
    sums->set_uid(number_of(Operand::sums));
    squares->set_uid(number_of(Operand::squares));
  }

  void data_gradient(const ConvolutionProblem& problem) {
    Tensor dx = conv_dgrad(input(Operand::first, problem.y), input(Operand::second, problem.weight),
                           window<fe::graph::Conv_dgrad_attributes>(problem));
    const auto combine = [&](const Tensor& other, fe::PointwiseMode_t mode) {
      describe(*dx, problem.x);
      return pointwise(dx, other, fe::graph::Pointwise_attributes().set_mode(mode));
    };
    if (problem.shortcut) dx = combine(input(Operand::shortcut, problem.x), fe::PointwiseMode_t::ADD);
    if (problem.mask) dx = combine(input(Operand::mask, problem.x), fe::PointwiseMode_t::RELU_BWD);
    finish(dx, problem.x);
  }

  void weight_gradient(const ConvolutionProblem& problem) {
    const Tensor x = input(Operand::first, problem.x);
    const Tensor dy = input(Operand::second, problem.y);
    finish(conv_wgrad(dy, x, window<fe::graph::Conv_wgrad_attributes>(problem)), problem.weight);
  }
};

}  // namespace

std::string ConvolutionProblem::key() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}{}{}{}{}{}{}", static_cast<int>(kind), to_string(type),
                     fmt::join(x, ","), fmt::join(weight, ","), fmt::join(y, ","), fmt::join(strides, ","),
                     fmt::join(padding_low, ","), fmt::join(padding_high, ","), fmt::join(dilations, ","),
                     groups, tf32, deterministic, bias, shortcut, relu, mask, statistics);
}

std::shared_ptr<ConvolutionPlan> build_cudnn_plan(Context& context, const ConvolutionProblem& problem,
                                                  int64_t choice) {
  return ConvolutionGraph(problem).build(context, problem, choice);
}

std::shared_ptr<ConvolutionPlan> load_cudnn_plan(Context& context, const ConvolutionProblem& problem,
                                                 const SavedPlan& saved) {
  const BuildingHandle handle(context);
  std::shared_ptr<fe::ExecutionPlan> plan;
  require_good(fe::detail::create_cudnn_execution_plan(plan, saved.text, handle.get()), "cannot read a plan");
  std::vector<fe::NumericalNote_t> notes;
  for (const cudnnBackendNumericalNote_t note : plan->getAllNumericNotes()) {
    notes.push_back(fe::detail::convert_from_cudnn_type(note));
  }
  require(!share_one(notes, forbidden_notes(problem)), ErrorCode::unsupported,
          "the saved plan is one that is left out");
  return std::make_shared<CudnnPlan>(context, std::move(plan), saved.choices);
}

std::string cudnn_version() {
  static std::once_flag once;
  std::call_once(once, [] { fe::cudnn_dlhandle = cudnn_library(); });
  const size_t version = fe::detail::get_backend_version();
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string cudnn_frontend_version() {
  return std::to_string(CUDNN_FRONTEND_VERSION);
}

}  // namespace tessera::cuda
