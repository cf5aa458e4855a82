#include "tessera/compile/executable.h"
#include "tessera/passes/pass.h"

#include "device_cpu/every_kernel.h"
#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

struct Extents {
  Shape x;
  DataType type = DataType::fp32;
};

std::string name_of(const Extents& extents) {
  std::string name(to_string(extents.type));
  for (int64_t extent : extents.x) name += "_" + std::to_string(extent);
  return name;
}

// Few and many channels, whole and broken vectors, one and many blocks of rows, one and several threads.
std::vector<Extents> extents() {
  std::vector<Extents> result;
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    for (const Shape& x : {Shape{4, 3, 5, 7}, Shape{2, 16, 16, 64}, Shape{13, 33}, Shape{3, 70, 19},
                           Shape{1, 1, 1, 5}, Shape{2, 3, 4, 5, 16}, Shape{1, 2048}}) {
      result.push_back({x, type});
    }
  }
  return result;
}

// %x: the activation's type, %c: the statistics'.
std::unique_ptr<Graph> graph_of(std::string text, const Extents& extents) {
  const std::string x = std::string(to_string(extents.type)) + to_string(extents.x);
  const std::string c = "fp32[" + std::to_string(extents.x.back()) + "]";
  const std::string zero = std::string(to_string(extents.type)) + "[] (0)";
  const std::vector<std::pair<std::string, std::string>> words{{"$X", x}, {"$C", c}, {"$ZERO", zero}};
  for (const auto& [word, replacement] : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + replacement.size()))
      text.replace(at, word.size(), replacement);
  }
  return parse_graph(text);
}

class BatchNorm : public ::testing::TestWithParam<Extents> {
 protected:
  // Fuses the graph into one node and compares all kernels of that.
  void check(const std::string& text, const std::string& kind) {
    const std::unique_ptr<Graph> graph = graph_of(text, GetParam());
    if (!kind.empty()) {
      run_pass(*graph, "fuse_batch_norm");
      verify(*graph);
    }
    const Node* node = nullptr;
    for (const auto& candidate : graph->nodes()) {
      if (candidate->operator_name() != "constant") node = candidate.get();
    }
    ASSERT_EQ(node->operator_name() == "fused" ? node->attributes().text("kind") : "", kind) << print(*graph);
    const std::vector<Tensor> all = inputs(*graph);
    std::vector<Tensor> used;
    for (const Value* input : node->inputs()) used.push_back(all.at(input->index()));
    Tolerances tolerances;
    for (const auto& output : node->outputs()) tolerances.push_back(tolerance(*output));
    expect_every_kernel(*node, used, tolerances, std::vector<bool>(used.size(), false));
  }

  static std::vector<Tensor> inputs(const Graph& graph) {
    std::vector<Tensor> result;
    for (const auto& input : graph.inputs()) {
      const bool positive = input->name() == "variance" || input->name() == "scale";
      result.push_back(random_tensor(input->data_type(), input->type().static_shape(), positive ? 0.5 : -2, 2,
                                     5 + result.size()));
    }
    return result;
  }

 private:
  int64_t rows() const { return element_count(GetParam().x) / GetParam().x.back(); }

  // x - mean over the deviation is at most sqrt(rows); sums over rows are normalised by their number only in
  // y and dx.
  Tolerance tolerance(const Value& output) const {
    const bool summed = output.type().rank() == 1 && output.name().starts_with("d");
    const auto n = static_cast<double>(rows());
    const Problem problem{.terms = rows(), .magnitude = summed ? 8 * std::sqrt(n) : 8};
    Tolerance result = tolerance_for(OperatorClass::normalisation, output.data_type(), problem);
    // The rounding of a sum or mask before it, in the activation's own type, where the reference rounds it.
    const double u = GetParam().type == DataType::fp32 ? 0 : unit_roundoff(GetParam().type);
    result.absolute += (summed ? 4 * std::sqrt(n) : 4) * 4 * u;
    return result;
  }
};

TEST_P(BatchNorm, Training) {
  check(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %y, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    output y = %y
  })",
        "");
}

TEST_P(BatchNorm, TrainingWithRelu) {
  check(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    output y = %y
    output mean = %mean
    output variance = %variance
  })",
        "batch_norm");
}

TEST_P(BatchNorm, TrainingWithShortcutAndRelu) {
  check(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C, input %shortcut: $X) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %sum = add(%shortcut, %n)
    %y = relu(%sum)
    output y = %y
    output variance = %variance
  })",
        "batch_norm");
}

TEST_P(BatchNorm, TrainingWithShortcut) {
  check(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C, input %shortcut: $X) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %y = add(%n, %shortcut)
    output y = %y
  })",
        "batch_norm");
}

// What recompute_activations makes: the bits of the training kernel, in one pass over memory.
TEST_P(BatchNorm, RecomputedGivesTheBitsOfTraining) {
  const std::unique_ptr<Graph> graph = graph_of(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    %again = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
    %copy = relu(%again)
    output y = %y
    output copy = %copy
  })",
                                                GetParam());
  const auto executable = compile(*graph, Device::cpu());
  executable->bind(std::make_shared<Variables>(Device::cpu()));
  ASSERT_EQ(executable->nodes().size(), 2u);
  EXPECT_EQ(executable->nodes()[1].kernel, "loops.batch_norm_inference");
  const std::vector<Tensor> values = inputs(*graph);
  const auto outputs = executable->run({{"x", values[0]}, {"scale", values[1]}, {"bias", values[2]}});
  EXPECT_TRUE(outputs.at("copy").identical(outputs.at("y")));
}

TEST_P(BatchNorm, InferenceWithRelu) {
  check(
      R"(graph g(input %x: $X, input %scale: $C, input %bias: $C, input %mean: $C, input %variance: $C) {
    %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
    %y = relu(%n)
    output y = %y
  })",
      "batch_norm_inference");
}

TEST_P(BatchNorm, Gradient) {
  check(R"(graph g(input %dy: $X, input %x: $X, input %scale: $C, input %mean: $C, input %variance: $C) {
    %dx, %dscale, %dbias = batch_norm_gradient(%dy, %x, %scale, %mean, %variance)
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })",
        "");
}

TEST_P(BatchNorm, GradientWithMask) {
  check(
      R"(graph g(input %dy: $X, input %y: $X, input %x: $X, input %scale: $C, input %mean: $C, input %variance: $C) {
    %zero = constant() {value = $ZERO}
    %open = greater(%y, %zero)
    %dz = select(%open, %dy, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance)
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })",
      "batch_norm_gradient");
}

TEST_P(BatchNorm, GradientWithSumAndMaskThatOthersRead) {
  check(
      R"(graph g(input %dy: $X, input %dy2: $X, input %y: $X, input %x: $X, input %scale: $C, input %mean: $C,
                   input %variance: $C) {
    %zero = constant() {value = $ZERO}
    %sum = add(%dy, %dy2)
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance)
    output dz = %dz
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })",
      "batch_norm_gradient");
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, BatchNorm, ::testing::ValuesIn(extents()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace tessera::testing
