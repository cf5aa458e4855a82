// Attention and its gradient: cuDNN's kernels and the graphs of products and clusters beside the reference.
#include <algorithm>
#include <filesystem>
#include <set>

#include "device/cuda/attention/block_attention.h"
#include "device/cuda/attention/short_attention.h"
#include "device/cuda/cudnn/cudnn_attention_graph.h"
#include "device/cuda/cudnn/plan_cache.h"
#include "device_cuda/attention_cases.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using cuda::AttentionProblem;
using cuda::CacheFiles;
using cuda::PlanCache;

// Cases for which the kernel after cuDNN's would be a surprise.
bool is_of_cudnn(const AttentionCase& own) {
  return own.type != DataType::fp32 && own.width % 8 == 0 && own.queries > 1 && !own.bias && own.dropout == 0;
}

struct RunCase {
  std::unique_ptr<Graph> graph;
  std::vector<Tensor> inputs;    // of the graph
  std::vector<Tensor> expected;  // y, log_sum, dq, dk, dv
  std::vector<Tensor> forward;   // inputs of the nodes
  std::vector<Tensor> backward;

  const Node& attention() const { return *graph->nodes().front(); }
  const Node& gradient() const { return *graph->nodes().back(); }
};

// `lifted`: added to every second column of v. There results are so large that their last rounding shows, and
// in the others each key does.
RunCase run_case(const AttentionCase& own, double lifted = 0) {
  RunCase result;
  result.graph = attention_graph(own);
  for (const auto& input : result.graph->inputs())
    result.inputs.push_back(input_of(own, *input, 3 + result.inputs.size()));
  Tensor& values = result.inputs[2];
  for (int64_t i = 0; lifted != 0 && i < values.size(); i += 2) values.set(i, values.at(i) + lifted);
  const auto& [q, k, v, dy] =
      std::tie(result.inputs[0], result.inputs[1], result.inputs[2], result.inputs[3]);
  result.expected = run_reference(*result.graph, result.inputs).outputs;
  result.forward = {q, k, v};
  result.backward = {dy, q, k, v, result.expected[0], result.expected[1]};
  for (size_t i = 4; i < result.inputs.size(); ++i) {
    result.forward.push_back(result.inputs[i]);
    result.backward.push_back(result.inputs[i]);
  }
  return result;
}

Tolerances backward_tolerances(const AttentionCase& own, const std::vector<Tensor>& expected) {
  Tolerances result;
  for (size_t i = 2; i < expected.size(); ++i) result.push_back(backward_tolerance(own, expected[i]));
  return result;
}

void expect_forward(const RunCase& own, const Tolerances& tolerances) {
  const std::vector<bool> frozen(own.forward.size(), false);
  expect_every_kernel(own.attention(), own.forward, tolerances, frozen, gpu_or_null());
}

class CudaAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CudaAttention, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const RunCase own = run_case(GetParam());
  expect_forward(own, forward_tolerances(GetParam()));
  if (is_of_cudnn(GetParam())) {
    EXPECT_EQ(refusal_of("cudnn.attention", own.attention(), true), "");
  }
  if (is_short(GetParam())) {
    EXPECT_EQ(refusal_of("generated.short_attention", own.attention(), true), "");
  }
  if (is_by_blocks(GetParam())) {
    EXPECT_EQ(refusal_of("generated.block_attention", own.attention(), true), "");
  }
}

class FewQueryAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(FewQueryAttention, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const RunCase own = run_case(GetParam(), 2 * kLargestOperand);
  expect_forward(own, forward_tolerances(GetParam()));
  EXPECT_EQ(refusal_of("generated.few_query_attention", own.attention(), true), "");
}

// Its text needs no GPU.
TEST_P(FewQueryAttention, Compiles) {
  const RunCase own = run_case(GetParam());
  EXPECT_GT(compile_candidates(own.attention()), 0);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, FewQueryAttention, ::testing::ValuesIn(few_query_cases()),
                         [](const auto& test) { return name_of(test.param); });

void expect_compiled(const KernelCandidate& candidate, cuda::Context& card, const Node& node) {
  const KernelRequest request{.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
  ASSERT_EQ(candidate.refusal(request), "");
  const std::unique_ptr<Kernel> kernel = candidate.create(request);
  const std::string source = card.modules().sources().front();
  EXPECT_FALSE(cuda::machine_code(source, card.traits().architecture).empty());
  EXPECT_EQ(missing_wait(source), "");
}

// The text of our own kernels, which needs no GPU: each shape with one type and mask, as it takes a second.
TEST_P(CudaAttention, CudaCompile) {
  const AttentionCase& own = GetParam();
  if (own.dropout > 0 ? own.type != DataType::bf16 : own.causal != (own.type == DataType::bf16)) return;
  const std::unique_ptr<Graph> graph = attention_graph(own);
  for (const auto& node : graph->nodes()) {
    if (own.shares_keys() && node == graph->nodes().back()) continue;
    if (is_short(own)) {
      cuda::Context card("h100");
      expect_compiled(cuda::short_attention_candidate(card), card, *node);
    }
    // All of them that are not short too, and some of these.
    if (!is_by_blocks(own) || (is_short(own) && own.batch < 3)) continue;
    for (const size_t choice : {0, 1}) {
      if (choice == 1 && (own.width > 64 || own.dropout == 0)) continue;
      cuda::Context card("h100");
      expect_compiled(cuda::block_attention_candidates(card)[choice], card, *node);
    }
  }
}

// Whether runs are to be equal bit for bit or not.
TEST_P(CudaAttention, EveryKernelOfTheGradient) {
  TESSERA_NEEDS_GPU();
  const RunCase own = run_case(GetParam());
  const std::vector<bool> frozen(own.backward.size(), false);
  for (const bool deterministic : {true, false}) {
    SCOPED_TRACE(deterministic ? "deterministic" : "in any order");
    expect_every_kernel(own.gradient(), own.backward, backward_tolerances(GetParam(), own.expected), frozen,
                        gpu_or_null(), deterministic);
    if (is_of_cudnn(GetParam())) {
      EXPECT_EQ(refusal_of("cudnn.attention_gradient", own.gradient(), deterministic), "");
    }
    if (GetParam().shares_keys()) continue;
    if (is_short(GetParam())) {
      EXPECT_EQ(refusal_of("generated.short_attention", own.gradient(), deterministic), "");
    }
    if (is_by_blocks(GetParam())) {
      EXPECT_EQ(refusal_of("generated.block_attention", own.gradient(), deterministic), "");
    }
  }
}

// The second run is recorded, later ones are launched at once.
TEST_P(CudaAttention, RecordedRunsAreEqual) {
  TESSERA_NEEDS_GPU();
  const RunCase own = run_case(GetParam());
  const auto executable = compile(*own.graph, gpu_or_null());
  executable->bind(std::make_shared<Variables>(gpu_or_null()));
  std::map<std::string, Tensor> inputs;
  for (size_t i = 0; i < own.inputs.size(); ++i) inputs[own.graph->inputs()[i]->name()] = own.inputs[i];
  Tolerances tolerances = forward_tolerances(GetParam());
  // Of a y that was rounded otherwise.
  for (Tolerance tolerance : backward_tolerances(GetParam(), own.expected)) {
    tolerance.absolute *= 2;
    tolerances.push_back(tolerance);
  }
  const std::map<std::string, Tensor> first = executable->run(inputs);
  for (size_t i = 0; i < own.expected.size(); ++i) {
    const std::string& name = own.graph->outputs()[i].name;
    expect_close(first.at(name), own.expected[i], tolerances[i], name);
  }
  for (int run = 0; run < 3; ++run) {
    for (const auto& [name, tensor] : executable->run(inputs)) {
      EXPECT_TRUE(tensor.identical(first.at(name))) << name << " differs in run " << run + 2;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaAttention, ::testing::ValuesIn(attention_cases()),
                         [](const auto& test) { return name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(WithDropout, CudaAttention, ::testing::ValuesIn(dropout_cases()),
                         [](const auto& test) { return name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(WithLengths, CudaAttention, ::testing::ValuesIn(length_cases()),
                         [](const auto& test) { return name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(WithSharedKeys, CudaAttention, ::testing::ValuesIn(shared_key_cases()),
                         [](const auto& test) { return name_of(test.param); });

// Never closed, as plans and handles belong to it.
cuda::Context& gpu_context() {
  static auto& context = *new cuda::Context(0);
  return context;
}

std::vector<Tensor> run_plan(const AttentionProblem& problem, cuda::CudnnPlan& plan, const RunCase& own) {
  using Operand = cuda::AttentionOperand;
  std::vector<Operand> sources = problem.gradient ? std::vector{Operand::dy, Operand::q, Operand::k,
                                                                Operand::v,  Operand::y, Operand::log_sum}
                                                  : std::vector{Operand::q, Operand::k, Operand::v};
  if (problem.key_lengths) sources.push_back(Operand::key_lengths);
  const std::vector<Operand> targets = problem.gradient ? std::vector{Operand::dq, Operand::dk, Operand::dv}
                                                        : std::vector{Operand::y, Operand::log_sum};
  std::vector<std::shared_ptr<void>> memory;
  cuda::PlanOperands operands;
  const auto give = [&](Operand operand, const std::shared_ptr<void>& owned) {
    memory.push_back(owned);
    operands.push_back({.number = static_cast<int64_t>(operand), .memory = owned.get()});
  };
  Device& device = *gpu_or_null();
  const std::vector<Tensor>& inputs = problem.gradient ? own.backward : own.forward;
  for (size_t i = 0; i < sources.size(); ++i) give(sources[i], memory_with(device, inputs[i]));
  const Node& node = problem.gradient ? own.gradient() : own.attention();
  for (size_t i = 0; i < targets.size(); ++i)
    give(targets[i], memory_of_ones(device, node.output(i)->type().bytes()));
  const std::shared_ptr<void> workspace =
      memory_of_ones(device, std::max<int64_t>(plan.workspace_bytes(), 1));
  const std::shared_ptr<Queue> queue = device.queue();
  plan.run(operands, workspace.get(), *queue);
  queue->synchronize();
  std::vector<Tensor> result;
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorType& type = node.output(i)->type();
    Tensor& tensor = result.emplace_back(type.data_type, type.static_shape());
    device.copy_to_host(tensor.raw(), memory[sources.size() + i].get(), type.bytes());
  }
  return result;
}

// Each process has its own cache.
TEST(CudaAttentionPlans, AreTheSameFromAFileWhereCudnnWritesThemDown) {
  TESSERA_NEEDS_GPU();
  const TemporaryFolder folder;
  const auto new_cache = [&] {
    return std::make_unique<PlanCache>(cuda::cudnn_maker(gpu_context()),
                                       CacheFiles(folder.path().string(), "plan"));
  };
  for (const auto& [gradient, lengths] :
       {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    const AttentionCase extents{.queries = 130, .keys = 70, .causal = true, .lengths = lengths};
    const RunCase own = run_case(extents);
    const AttentionProblem problem{.gradient = gradient,
                                   .type = extents.type,
                                   .batch = extents.batch,
                                   .heads = extents.heads,
                                   .key_heads = extents.heads_of_keys(),
                                   .queries = extents.queries,
                                   .keys = extents.keys,
                                   .width = extents.width,
                                   .value_width = extents.value_width,
                                   .scale = 0.125,
                                   .causal = extents.causal,
                                   .key_lengths = lengths};
    const auto first = new_cache();
    const auto plan = first->get(problem.plan_problem(), 0);
    RecordProperty(
        fmt::format("{}{}_on_disk", gradient ? "gradient" : "attention", lengths ? "_of_lengths" : ""),
        std::filesystem::exists(first->path(problem.plan_problem(), 0)) ? "yes" : "no");
    const auto second = new_cache();
    const auto again = second->get(problem.plan_problem(), 0);
    EXPECT_EQ(again->workspace_bytes(), plan->workspace_bytes()) << problem.key();
    EXPECT_EQ(again->saved(), plan->saved()) << problem.key();
    const std::vector<Tensor> expected = run_plan(problem, *plan, own);
    const std::vector<Tensor> actual = run_plan(problem, *again, own);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(actual[i].identical(expected[i])) << problem.key() << ", result " << i;
  }
}

TEST(CudaAttentionPlans, TellAllProblemsApart) {
  std::vector<AttentionProblem> problems(1);
  const auto add = [&](const std::function<void(AttentionProblem&)>& change) {
    change(problems.emplace_back());
  };
  for (const auto flag : {&AttentionProblem::gradient, &AttentionProblem::causal,
                          &AttentionProblem::key_lengths, &AttentionProblem::deterministic}) {
    add([flag](auto& problem) { problem.*flag = !(problem.*flag); });
  }
  for (const auto extent : {&AttentionProblem::batch, &AttentionProblem::heads, &AttentionProblem::key_heads,
                            &AttentionProblem::queries, &AttentionProblem::keys, &AttentionProblem::width,
                            &AttentionProblem::value_width}) {
    add([extent](auto& problem) { problem.*extent = 12; });
  }
  add([](auto& problem) { problem.type = DataType::bf16; });
  add([](auto& problem) { problem.scale = 0.1; });
  add([](auto& problem) { problem.bias = {.batch = 1, .heads = 1}; });
  add([](auto& problem) { problem.bias = {.batch = 2, .heads = 1}; });
  add([](auto& problem) { problem.bias = {.batch = 1, .heads = 2}; });
  for (const auto operand : {cuda::AttentionOperand::q, cuda::AttentionOperand::k}) {
    add([operand](auto& problem) { problem.strides[operand] = {64, 8, 16, 1}; });
    add([operand](auto& problem) { problem.strides[operand] = {64, 16, 8, 1}; });
  }
  std::set<std::string> keys;
  for (const AttentionProblem& problem : problems) keys.insert(problem.key());
  EXPECT_EQ(keys.size(), problems.size());
}

}  // namespace
}  // namespace tessera::testing
