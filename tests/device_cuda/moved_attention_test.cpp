// Attention that reads and writes heads where products have them, in strides of their own.
#include <span>

#include "tessera/passes/fuse.h"

#include "device_cuda/attention_case.h"
#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

struct MovedCase {
  std::string name;
  std::string inputs;
  std::string before;  // makes %q, %k and %v
  std::string after;   // moves %dq, %dk and %dv
  AttentionCase own = {};
  // The bias has a number for each score, with the heads before the batch, and a gradient.
  bool bias_gradient = false;
};

constexpr std::string_view kSelfInputs = "input %x: $T[$B, $Q, $3W]";
constexpr std::string_view kSelfBefore = R"(
  %r = reshape(%x) {shape = [$B, $Q, 3, $H, $D]}
  %t = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
  %sq, %sk, %sv = split(%t) {axis = 0, sizes = [1, 1, 1]}
  %q = reshape(%sq) {shape = [$B, $H, $Q, $D]}
  %k = reshape(%sk) {shape = [$B, $H, $K, $D]}
  %v = reshape(%sv) {shape = [$B, $H, $K, $D]})";
constexpr std::string_view kSelfAfter = R"(
  %rq = reshape(%dq) {shape = [1, $B, $H, $Q, $D]}
  %rk = reshape(%dk) {shape = [1, $B, $H, $K, $D]}
  %rv = reshape(%dv) {shape = [1, $B, $H, $K, $D]}
  %joined = concat(%rq, %rk, %rv) {axis = 0}
  %dx = transpose(%joined) {permutation = [1, 3, 0, 2, 4]}
  output dx = %dx)";

// Queries of one text, keys and values of another.
constexpr std::string_view kCrossInputs = "input %x: $T[$B, $Q, $W], input %m: $T[$B, $K, $2V]";
constexpr std::string_view kCrossBefore = R"(
  %rx = reshape(%x) {shape = [$B, $Q, $H, $D]}
  %q = transpose(%rx) {permutation = [0, 2, 1, 3]}
  %rm = reshape(%m) {shape = [$B, $K, 2, $G, $D]}
  %t = transpose(%rm) {permutation = [2, 0, 3, 1, 4]}
  %sk, %sv = split(%t) {axis = 0, sizes = [1, 1]}
  %k = reshape(%sk) {shape = [$B, $G, $K, $D]}
  %v = reshape(%sv) {shape = [$B, $G, $K, $D]})";
constexpr std::string_view kCrossAfter = R"(
  %dx = transpose(%dq) {permutation = [0, 2, 1, 3]}
  %rk = reshape(%dk) {shape = [1, $B, $G, $K, $D]}
  %rv = reshape(%dv) {shape = [1, $B, $G, $K, $D]}
  %joined = concat(%rk, %rv) {axis = 0}
  %dm = transpose(%joined) {permutation = [1, 3, 0, 2, 4]}
  output dx = %dx
  output dm = %dm)";

// Queries, and fewer heads of keys and of values, are products of their own.
constexpr std::string_view kApartInputs =
    "input %x: $T[$B, $Q, $W], input %m: $T[$B, $K, $V], input %n: $T[$B, $K, $V]";
constexpr std::string_view kApartBefore = R"(
  %rx = reshape(%x) {shape = [$B, $Q, $H, $D]}
  %q = transpose(%rx) {permutation = [0, 2, 1, 3]}
  %rm = reshape(%m) {shape = [$B, $K, $G, $D]}
  %k = transpose(%rm) {permutation = [0, 2, 1, 3]}
  %rn = reshape(%n) {shape = [$B, $K, $G, $D]}
  %v = transpose(%rn) {permutation = [0, 2, 1, 3]})";
constexpr std::string_view kApartAfter = R"(
  %dx = transpose(%dq) {permutation = [0, 2, 1, 3]}
  %dm = transpose(%dk) {permutation = [0, 2, 1, 3]}
  %dn = transpose(%dv) {permutation = [0, 2, 1, 3]}
  output dx = %dx
  output dm = %dm
  output dn = %dn)";

// Keys and values lie as attention has them, and their gradients stay there.
constexpr std::string_view kSomeInputs =
    "input %x: $T[$B, $Q, $W], input %k: $T[$B, $H, $K, $D], input %v: "
    "$T[$B, $H, $K, $D]";
constexpr std::string_view kSomeBefore = R"(
  %rx = reshape(%x) {shape = [$B, $Q, $H, $D]}
  %q = transpose(%rx) {permutation = [0, 2, 1, 3]})";
constexpr std::string_view kSomeAfter = R"(
  output dq = %dq
  output dk = %dk
  output dv = %dv)";

std::string written(std::string text, const AttentionCase& own) {
  const int64_t width = own.heads * own.width, key_width = own.heads_of_keys() * own.width;
  const std::vector<std::pair<std::string, std::string>> words{{"$2V", std::to_string(2 * key_width)},
                                                               {"$3W", std::to_string(3 * width)},
                                                               {"$W", std::to_string(width)},
                                                               {"$V", std::to_string(key_width)},
                                                               {"$B", std::to_string(own.batch)},
                                                               {"$H", std::to_string(own.heads)},
                                                               {"$G", std::to_string(own.heads_of_keys())},
                                                               {"$Q", std::to_string(own.queries)},
                                                               {"$K", std::to_string(own.keys)},
                                                               {"$D", std::to_string(own.width)},
                                                               {"$T", std::string(to_string(own.type))}};
  for (const auto& [word, replacement] : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + replacement.size()))
      text.replace(at, word.size(), replacement);
  }
  return text;
}

// Both halves of a layer, with what moves its heads.
std::unique_ptr<Graph> layer_of(const MovedCase& moved) {
  const bool drops = moved.own.dropout > 0;
  const bool has_lengths = moved.own.lengths;
  const std::string rest = std::string(drops ? ", %counter" : "") +
                           (moved.own.bias ? ", %bias"
                            : has_lengths  ? ", _"
                                           : "") +
                           (has_lengths ? ", %key_lengths" : "");
  const std::string options =
      fmt::format("{{scale = 0.125, causal = {}{}}}", moved.own.causal,
                  drops ? fmt::format(", rate = {}, stream = 2", moved.own.dropout) : "");
  const std::string attention = drops ? "dropout_attention" : "attention";
  std::string text = "graph g(" + moved.inputs + ", input %dj: $T[$B, $Q, $W]";
  if (moved.bias_gradient)
    text += ", input %moved_bias: $T[$H, $B, $Q, $K]";
  else if (moved.own.bias)
    text += ", input %bias: $T[1, 1, $Q, $K]";
  if (drops) text += ", input %counter: int64[2]";
  if (has_lengths) text += ", input %key_lengths: int32[$B]";
  text += ") {" + moved.before;
  if (moved.bias_gradient) text += "\n  %bias = transpose(%moved_bias) {permutation = [1, 0, 2, 3]}";
  text += "\n  %y, %log_sum = " + attention + "(%q, %k, %v" + rest + ") " + options + R"(
  %z = transpose(%y) {permutation = [0, 2, 1, 3]}
  %rdj = reshape(%dj) {shape = [$B, $Q, $H, $D]}
  %dy = transpose(%rdj) {permutation = [0, 2, 1, 3]}
  %dq, %dk, %dv = )" +
          attention + "_gradient(%dy, %q, %k, %v, %y, %log_sum" + rest + ") " + options + moved.after;
  if (moved.bias_gradient)
    text += "\n  %db = attention_bias_gradient(%dy, %q, %k, %v, %y, %log_sum, %bias) " + options +
            "\n  output dbias = %db";
  text += "\n  output z = %z\n}";
  return parse_graph(written(text, moved.own));
}

std::vector<MovedCase> moved_cases() {
  std::vector<MovedCase> result;
  const auto add = [&](const std::string& name, std::string_view inputs, std::string_view before,
                       std::string_view after, AttentionCase own) {
    own.value_width = own.width;
    for (const DataType type : {DataType::fp16, DataType::bf16}) {
      for (const bool causal : {false, true}) {
        own.type = type;
        own.causal = causal;
        result.push_back({fmt::format("{}_{}{}", name, to_string(type), causal ? "_causal" : ""),
                          std::string(inputs), std::string(before), std::string(after), own});
      }
    }
  };
  const AttentionCase whole{.batch = 2, .heads = 3, .queries = 128, .keys = 128, .width = 64};
  const AttentionCase broken{.batch = 3, .heads = 2, .queries = 70, .keys = 130, .width = 40};
  add("Self", kSelfInputs, kSelfBefore, kSelfAfter, whole);
  add("SelfOfBrokenTiles", kSelfInputs, kSelfBefore, kSelfAfter,
      {.batch = 3, .heads = 2, .queries = 77, .keys = 77, .width = 40});
  add("SelfWithBias", kSelfInputs, kSelfBefore, kSelfAfter,
      {.batch = 2, .heads = 2, .queries = 96, .keys = 96, .width = 64, .bias = true});
  for (const int64_t keys : {192, 200}) {
    add(keys == 200 ? "BrokenCrossWithGradientOfBias" : "CrossWithGradientOfBias", kCrossInputs, kCrossBefore,
        kCrossAfter, {.batch = 3, .heads = 2, .queries = 96, .keys = keys, .width = 64, .bias = true});
    for (MovedCase& added : std::span(result).last(4)) added.bias_gradient = true;
  }
  add("SelfOfShortTexts", kSelfInputs, kSelfBefore, kSelfAfter,
      {.batch = 5, .heads = 3, .queries = 32, .keys = 32, .width = 64, .bias = true});
  add("CrossOfShortTexts", kCrossInputs, kCrossBefore, kCrossAfter,
      {.batch = 3, .heads = 5, .queries = 37, .keys = 20, .width = 32});
  add("Cross", kCrossInputs, kCrossBefore, kCrossAfter, broken);
  add("QueriesAlone", kSomeInputs, kSomeBefore, kSomeAfter, broken);
  add("SelfWithDropout", kSelfInputs, kSelfBefore, kSelfAfter,
      {.batch = 2, .heads = 2, .queries = 160, .keys = 160, .width = 64, .bias = true, .dropout = 0.1});
  add("CrossWithDropout", kCrossInputs, kCrossBefore, kCrossAfter,
      {.batch = 3, .heads = 2, .queries = 70, .keys = 132, .width = 32, .dropout = 0.25});
  add("SelfWithLengths", kSelfInputs, kSelfBefore, kSelfAfter,
      {.batch = 3, .heads = 2, .queries = 160, .keys = 160, .width = 64, .lengths = true});
  add("CrossWithDropoutAndLengths", kCrossInputs, kCrossBefore, kCrossAfter,
      {.batch = 3, .heads = 2, .queries = 70, .keys = 132, .width = 32, .dropout = 0.25, .lengths = true});
  add("CrossOfSharedKeys", kCrossInputs, kCrossBefore, kCrossAfter,
      {.batch = 2, .heads = 4, .queries = 160, .keys = 200, .width = 64, .key_heads = 2});
  add("SharedKeysApart", kApartInputs, kApartBefore, kApartAfter,
      {.batch = 2, .heads = 6, .queries = 300, .keys = 300, .width = 40, .key_heads = 2});
  add("SharedKeysOfShortTexts", kCrossInputs, kCrossBefore, kCrossAfter,
      {.batch = 3, .heads = 4, .queries = 37, .keys = 20, .width = 32, .key_heads = 1});
  return result;
}

// Kernels of our own make no gradient of keys that heads share.
bool is_ours(const AttentionCase& own, const std::string& kind) {
  return !own.shares_keys() || !kind.ends_with("_gradient");
}

// The layer after the device's patterns: attention and its gradient.
struct FusedLayer {
  std::unique_ptr<Graph> graph;
  std::vector<Node*> nodes;
};

FusedLayer fused_layer(const MovedCase& moved) {
  FusedLayer result{.graph = layer_of(moved), .nodes = {}};
  PassContext context;
  context.target = Device::open("cuda:plan-h100")->pass_target({});
  EXPECT_TRUE(run_pass(*result.graph, "fuse_patterns", context));
  verify(*result.graph);
  result.nodes = nodes_of(*result.graph, "fused");
  EXPECT_EQ(result.nodes.size(), 2U) << print(*result.graph);
  return result;
}

class CudaMovedAttention : public ::testing::TestWithParam<MovedCase> {};

// Which kernels there are needs no GPU.
TEST_P(CudaMovedAttention, LeavesNothingToMove) {
  const FusedLayer layer = fused_layer(GetParam());
  EXPECT_TRUE(nodes_of(*layer.graph, "transpose").empty()) << print(*layer.graph);
  for (const Node* node : layer.nodes) {
    const KernelRequest request{.node = *node,
                                .frozen_inputs = std::vector<bool>(node->inputs().size(), false)};
    std::vector<std::string> willing;
    for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(*node)) {
      if (candidate.refusal(request).empty()) willing.push_back(candidate.name);
    }
    const AttentionCase& own = GetParam().own;
    std::vector<std::string> expected;
    const std::string kind = node->attributes().text("kind");
    if (own.dropout == 0) expected.push_back("cudnn." + kind);
    if (is_short(own) && is_ours(own, kind)) {
      const bool is_first = std::max(own.queries, own.keys) <= 64;
      expected.insert(is_first ? expected.begin() : expected.end(), "generated.short_attention");
    }
    if (is_by_blocks(own) && is_ours(own, kind) &&
        !GetParam().bias_gradient) {  // whose bias lies in another order
      expected.emplace_back("generated.block_attention");
      if (own.dropout > 0) expected.emplace_back("generated.block_attention#wide");
    }
    expected.emplace_back("expanded");
    EXPECT_EQ(willing, expected);
  }
}

// The nodes' inputs are what the reference makes of the layer's.
TEST_P(CudaMovedAttention, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const MovedCase& moved = GetParam();
  FusedLayer layer = fused_layer(moved);
  std::vector<Tensor> inputs;
  for (const auto& input : layer.graph->inputs())
    inputs.push_back(input_of(moved.own, *input, 3 + inputs.size()));
  const size_t own_outputs = layer.graph->outputs().size();
  for (const Node* node : layer.nodes) {
    for (Value* input : node->inputs())
      layer.graph->add_output(fmt::format("input{}", layer.graph->outputs().size()), input);
  }
  const std::vector<Tensor> values = run_reference(*layer.graph, inputs).outputs;
  auto next = values.begin() + static_cast<ptrdiff_t>(own_outputs);
  for (const Node* node : layer.nodes) {
    const std::string kind = node->attributes().text("kind");
    const std::vector<Tensor> operands(next, next + std::ssize(node->inputs()));
    next += std::ssize(node->inputs());
    Tolerances tolerances = forward_tolerances(moved.own);
    if (kind.ends_with("attention_gradient")) {
      tolerances.clear();
      for (const Tensor& expected : run_reference(*node->body(), operands).outputs)
        tolerances.push_back(backward_tolerance(moved.own, expected));
    }
    const std::vector<bool> frozen(operands.size(), false);
    for (const bool deterministic : {true, false}) {
      SCOPED_TRACE(kind + (deterministic ? ", deterministic" : ", in any order"));
      expect_every_kernel(*node, operands, tolerances, frozen, gpu_or_null(), deterministic);
      if (moved.own.dropout == 0 && (!moved.own.bias || moved.bias_gradient)) {
        EXPECT_EQ(refusal_of("cudnn." + kind, *node, deterministic), "");
      }
      if (is_short(moved.own) && is_ours(moved.own, kind)) {
        EXPECT_EQ(refusal_of("generated.short_attention", *node, deterministic), "");
      }
    }
  }
}

// The whole layer as it is compiled beside one whose transposes run; what both round is in the same places.
TEST_P(CudaMovedAttention, RecordedRunsAreThoseOfTransposes) {
  TESSERA_NEEDS_GPU();
  const MovedCase& moved = GetParam();
  const std::unique_ptr<Graph> graph = layer_of(moved);
  std::map<std::string, Tensor> inputs;
  for (const auto& input : graph->inputs()) {
    inputs[input->name()] = input_of(moved.own, *input, 3 + inputs.size());
  }
  const auto executable_without = [&](const std::set<std::string>& disabled) {
    CompileOptions options;
    options.pipeline.disabled = disabled;
    auto executable = compile(*graph, gpu_or_null(), options);
    executable->bind(std::make_shared<Variables>(gpu_or_null()));
    return executable;
  };
  const auto expected =
      executable_without({"fuse_patterns/attention", "fuse_patterns/attention_gradient",
                          "fuse_patterns/dropout_attention", "fuse_patterns/dropout_attention_gradient"})
          ->run(inputs);
  const auto executable = executable_without({});
  const auto first = executable->run(inputs);
  for (const auto& [name, tensor] : expected) {
    Tolerance tolerance = backward_tolerance(moved.own, tensor);
    tolerance.absolute *= 2;  // either may be so far off
    expect_close(first.at(name), tensor, tolerance, name);
  }
  for (int run = 0; run < 3; ++run) {
    for (const auto& [name, tensor] : executable->run(inputs))
      EXPECT_TRUE(tensor.identical(first.at(name))) << name << " differs in run " << run + 2;
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaMovedAttention, ::testing::ValuesIn(moved_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
