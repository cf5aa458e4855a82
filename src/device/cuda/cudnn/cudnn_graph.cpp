#include "device/cuda/cudnn/cudnn_graph.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/workspace_layout.h"

#include "device/cuda/cudnn/cudnn_frontend_graph.h"
#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/queue.h"
#include "device/cuda/runtime/status.h"

namespace cudnn_frontend {
// cudnn-frontend looks its functions up here.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace tessera::cuda {
namespace {

// What it is that cudnn-frontend says itself, without a status: a graph that it cannot describe or find a
// plan for, or for which cuDNN is too old; else a fault.
ErrorCode own_code(fe::error_code_t code) {
  switch (code) {
    case fe::error_code_t::ATTRIBUTE_NOT_SET:
    case fe::error_code_t::SHAPE_DEDUCTION_FAILED:
    case fe::error_code_t::GRAPH_NOT_SUPPORTED:
    case fe::error_code_t::GRAPH_EXECUTION_PLAN_CREATION_FAILED:
    case fe::error_code_t::HEURISTIC_QUERY_FAILED:
    case fe::error_code_t::UNSUPPORTED_GRAPH_FORMAT:
    case fe::error_code_t::CUDNN_BACKEND_API_FAILED:
    case fe::error_code_t::INVALID_VALUE:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::device_fault;
  }
}

// cuDNN gives one reason of several, and takes a GPU that has failed for a plan that does not suit it. `own`
// is the code of a message without a status.
[[noreturn]] void fail_by_cudnn(const Context& context, std::string_view what, std::string_view message,
                                ErrorCode own) {
  context.check_sound();
  const ErrorCode code = cudnn_error_code(message).value_or(own);
  if (code == ErrorCode::unsupported) backend::refuse("cuDNN {}: {}", what, message);
  fail(code, "cuDNN {}: {}", what, message);
}

void require_good(const Context& context, const fe::error_t& status, std::string_view what) {
  if (status.is_bad()) fail_by_cudnn(context, what, status.err_msg, own_code(status.code));
}

cudnnHandle_t new_handle(const Context& context) {
  cudnn_version();  // loads cuDNN
  context.enter();
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = fe::detail::create_handle(&handle);
  if (status == CUDNN_STATUS_SUCCESS) return handle;
  context.check_sound();
  const std::string name = fe::detail::get_error_string(status);
  fail(cudnn_error_code(name).value_or(ErrorCode::device_fault), "cuDNN cannot be started on {}: {}",
       context.traits().model, name);
}

// Handles that nobody uses: kept for the next user, as they are slow to make.
class IdleHandles {
 public:
  explicit IdleHandles(const Context& context) : context_(context) {}

  cudnnHandle_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        const cudnnHandle_t handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    return new_handle(context_);
  }
  void give_back(cudnnHandle_t handle) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(handle);
  }

 private:
  const Context& context_;
  std::mutex mutex_;
  std::vector<cudnnHandle_t> idle_;
};

// What plans are built with: a handle serves one thread at a time.
class BuildingHandle {
 public:
  explicit BuildingHandle(Context& context) : idle_(context.part<IdleHandles>()), handle_(idle_.take()) {
    context.enter();
  }
  ~BuildingHandle() { idle_.give_back(handle_); }
  BuildingHandle(const BuildingHandle&) = delete;
  BuildingHandle& operator=(const BuildingHandle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  IdleHandles& idle_;
  cudnnHandle_t handle_;
};

// What plans run with: one handle for each queue, from its first plan on.
cudnnHandle_t running_handle(CudaQueue& queue) {
  std::shared_ptr<void>& handle = queue.cudnn_handle();
  if (handle == nullptr) {
    IdleHandles& idle = queue.context().part<IdleHandles>();
    handle = {idle.take(), [&idle](void* taken) {
                fe::detail::set_stream(static_cast<cudnnHandle_t>(taken), nullptr);
                idle.give_back(static_cast<cudnnHandle_t>(taken));
              }};
    fe::detail::set_stream(static_cast<cudnnHandle_t>(handle.get()), queue.stream());
  }
  return static_cast<cudnnHandle_t>(handle.get());
}

// What cuDNN's own messages leave out.
std::string description(const std::vector<int64_t>& numbers, const std::vector<void*>& pointers,
                        const void* workspace) {
  std::string text = fmt::format("with its workspace at {}", workspace);
  for (size_t i = 0; i < numbers.size(); ++i)
    text += fmt::format(", tensor {} at {}", numbers[i], static_cast<const void*>(pointers[i]));
  return text;
}

// Plans with one of these notes are left out.
std::vector<fe::NumericalNote_t> forbidden_notes(const PlanProblem& problem) {
  std::vector<fe::NumericalNote_t> forbidden;
  if (problem.without_narrow_sums) forbidden.push_back(fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION);
  if (problem.without_tensor_cores) forbidden.push_back(fe::NumericalNote_t::TENSOR_CORE);
  if (problem.without_varying_sums) forbidden.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  return forbidden;
}

bool share_one(const std::vector<fe::NumericalNote_t>& a, const std::vector<fe::NumericalNote_t>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

class BuiltPlan : public CudnnPlan {
 public:
  BuiltPlan(Context& context, std::shared_ptr<fe::ExecutionPlan> plan, PlanTensors tensors, int64_t choices)
      : context_(context), plan_(std::move(plan)), tensors_(std::move(tensors)), choices_(choices) {}

  int64_t workspace_bytes() const override { return tensor_bytes() + plan_->getWorkspaceSize(); }
  int64_t choices() const override { return choices_; }

  SavedPlan saved() const override {
    try {
      return {choices_, with_tensors(tensors_, plan_->getJsonRepresentation())};
    } catch (const fe::cudnnException&) {
      return {choices_, ""};
    }
  }

  void run(const PlanOperands& operands, void* workspace, Queue& queue) override {
    context_.enter();
    const CUstream stream = stream_of(queue);
    const cudnnHandle_t handle = running_handle(static_cast<CudaQueue&>(queue));
    // Engines may keep what they need while they enqueue their kernels in the plan.
    const std::lock_guard lock(enqueuing_);
    std::vector<int64_t> numbers;
    std::vector<void*> pointers;
    const auto give = [&](int64_t number, const void* memory) {
      if (memory == nullptr) return;
      numbers.push_back(number);
      pointers.push_back(const_cast<void*>(memory));
    };
    for (const PlanOperand& operand : operands) give(operand.number, operand.memory);
    for (const PlanTensors::Scalar& scalar : tensors_.scalars) give(scalar.number, &scalar.bits);
    auto* space = static_cast<std::byte*>(workspace);
    for (const PlanTensors::Space& one : tensors_.spaces) {
      give(one.number, space + one.offset);
      if (one.words == 0) continue;
      check(driver().cuMemsetD32Async_(address(space + one.offset), one.value, static_cast<size_t>(one.words),
                                       stream),
            "filling cuDNN's workspace");
    }
    // Null stays null: cuDNN takes no address where it needs no memory.
    void* rest = space == nullptr ? nullptr : space + tensor_bytes();
    const fe::error_t status = fe::detail::execute(handle, plan_.get(), pointers, numbers, rest);
    if (status.is_good()) return;
    require_good(context_, status,
                 fmt::format("execution of {} {}", plan_->getTag(), description(numbers, pointers, rest)));
  }

 private:
  // cuDNN's own part of the workspace begins after those, as aligned as the whole.
  int64_t tensor_bytes() const { return round_up(tensors_.bytes, backend::WorkspaceLayout::kAlignment); }

  Context& context_;
  std::shared_ptr<fe::ExecutionPlan> plan_;
  std::mutex enqueuing_;
  PlanTensors tensors_;
  int64_t choices_;
};

// What is copied from the host before each run, as words of 32 bits.
void set_words(PlanTensors::Space& space, const std::vector<float>& words) {
  space.words = static_cast<int64_t>(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t value = 0;
    std::memcpy(&value, &words[i], sizeof value);
    backend::refuse_unless(i == 0 || value == space.value, "cuDNN asks for an array from the host");
    space.value = value;
  }
}

}  // namespace

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
      backend::refuse("cuDNN does not compute with {}", to_string(type));
  }
}

void CudnnGraph::set_type(DataType type) {
  const bool wide = type == DataType::fp64;
  const fe::DataType_t accumulator = wide ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;
  set_io_data_type(cudnn_type(type));
  set_intermediate_data_type(accumulator);
  set_compute_data_type(accumulator);
}

std::shared_ptr<CudnnPlan> CudnnGraph::build(Context& context, const PlanProblem& problem, int64_t choice,
                                             cudnnHandle_t handle) {
  require_good(context, validate(), "refuses the graph");
  require_good(context, build_operation_graph(handle), "cannot describe it");
  require_good(context, create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "has no plan");
  const std::vector<fe::NumericalNote_t> forbidden = forbidden_notes(problem);
  deselect_numeric_notes(forbidden);
  std::vector<int64_t> allowed;
  for (size_t i = 0; i < plans.numeric_notes.size(); ++i) {
    if (!share_one(plans.numeric_notes[i], forbidden)) allowed.push_back(static_cast<int64_t>(i));
  }
  const auto choices = static_cast<int64_t>(allowed.size());
  if (choice == 0) {
    require_good(context, check_support(handle), "supports no engine for it");
    require_good(context, build_plans(handle, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE),
                 "cannot build a plan");
  } else {
    backend::refuse_unless(choice < choices, "cuDNN names {} plans", choices);
    require_good(context, build_plan_at_index(handle, allowed[static_cast<size_t>(choice)]),
                 "cannot build this plan");
  }
  // A plan knows of all its operands; the graph is not needed to run it.
  const auto built = plans.execution_plans.at(static_cast<size_t>(plans.candidate));
  return std::make_shared<BuiltPlan>(context, built, own_tensors(context, problem), choices);
}

PlanTensors CudnnGraph::own_tensors(const Context& context, const PlanProblem& problem) const {
  PlanTensors tensors;
  tensors.bytes = get_fe_workspace_size_subtree();
  std::unordered_map<int64_t, pass_by_values_t> scalars;
  require_good(context, collect_pass_by_value_tensors_subtree(scalars), "has other scalars than known");
  for (const auto& [number, value] : scalars) {
    PlanTensors::Scalar scalar{.number = number};
    std::visit([&](const auto& typed) { std::memcpy(&scalar.bits, &typed, sizeof typed); }, value);
    tensors.scalars.push_back(scalar);
  }
  // By number: what is to be done (0 a copy from the host, 1 zeros, 2 nothing), where, and the copy's words.
  std::unordered_map<int64_t, std::tuple<int64_t, int64_t, std::vector<float>>> spaces;
  int64_t offset = 0;
  require_good(context, collect_tensors_in_workspace_subtree(spaces, offset),
               "has another workspace than known");
  for (const auto& [number, description] : spaces) {
    const auto& [action, begin, words] = description;
    PlanTensors::Space space{.number = number, .offset = begin};
    backend::refuse_unless(action == 0 || action == 2, "cuDNN {} wants zeros in its workspace",
                           cudnn_version());
    if (action == 0) set_words(space, words);
    tensors.spaces.push_back(space);
  }
  for (const PlanProblem::Filled& filled : problem.filled) {
    const int64_t begin = round_up(tensors.bytes, backend::WorkspaceLayout::kAlignment);
    tensors.spaces.push_back(
        {.number = filled.number, .offset = begin, .words = filled.words, .value = filled.value});
    tensors.bytes = begin + filled.words * static_cast<int64_t>(sizeof filled.value);
  }
  const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
  std::sort(tensors.scalars.begin(), tensors.scalars.end(), by_number);
  std::sort(tensors.spaces.begin(), tensors.spaces.end(), by_number);
  return tensors;
}

// cudnn-frontend throws from some of its functions where others return a status.
template <typename Make>
static std::shared_ptr<CudnnPlan> made_by_cudnn(const Context& context, const Make& make) {
  try {
    return make();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    fail_by_cudnn(context, "has no plan", error.what(), ErrorCode::unsupported);
  }
}

std::shared_ptr<CudnnPlan> build_cudnn_plan(Context& context, const PlanProblem& problem, int64_t choice) {
  const BuildingHandle handle(context);
  return made_by_cudnn(context, [&] {
    CudnnGraph graph;
    graph.set_sm_version(context.traits().architecture);  // or cudnn-frontend asks CUDA's runtime library
    problem.describe(graph);
    return graph.build(context, problem, choice, handle.get());
  });
}

std::shared_ptr<CudnnPlan> load_cudnn_plan(Context& context, const PlanProblem& problem,
                                           const SavedPlan& saved) {
  auto parsed = parse_plan_with_tensors(saved.text);
  backend::refuse_unless(parsed.has_value(), "the saved plan's tensors cannot be read");
  const BuildingHandle handle(context);
  return made_by_cudnn(context, [&]() -> std::shared_ptr<CudnnPlan> {
    std::shared_ptr<fe::ExecutionPlan> plan;
    require_good(context, fe::detail::create_cudnn_execution_plan(plan, parsed->plan, handle.get()),
                 "cannot read a plan");
    std::vector<fe::NumericalNote_t> notes;
    for (const cudnnBackendNumericalNote_t note : plan->getAllNumericNotes()) {
      notes.push_back(fe::detail::convert_from_cudnn_type(note));
    }
    backend::refuse_unless(!share_one(notes, forbidden_notes(problem)),
                           "the saved plan is one that is left out");
    return std::make_shared<BuiltPlan>(context, std::move(plan), std::move(parsed->tensors), saved.choices);
  });
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
