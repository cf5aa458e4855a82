// Frozen inputs that kernels have packed: once for all that want the same.
#include <cstring>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "support/counting_device.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

constexpr int64_t kColumns = 64;
constexpr int64_t kBytes = kColumns * 4;

// y = x * w, rows by rows: reads w as it was packed, where it is frozen, and not where it lies.
class PackingProduct : public Kernel {
 public:
  PackingProduct(const KernelRequest& request, std::string layout, int& packed)
      : rows_(request.node.input(0)->type().element_count() / kColumns),
        packs_(request.frozen_inputs[1]),
        layout_(std::move(layout)),
        packed_(packed) {}

  std::vector<Packing> packings() const override {
    if (!packs_) return {};
    return {{.input = 1, .layout = layout_, .bytes = kBytes}};
  }
  void pack(size_t, const void* memory, void* packed) const override {
    std::memcpy(packed, memory, kBytes);
    ++packed_;
  }
  void run(const KernelArguments& arguments) override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    const auto* w = static_cast<const float*>(packs_ ? arguments.packed[0] : arguments.inputs[1]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (int64_t i = 0; i < rows_ * kColumns; ++i) y[i] = x[i] * w[i % kColumns];
  }

 private:
  int64_t rows_;
  bool packs_;
  std::string layout_;
  int& packed_;
};

class PackingDevice : public CountingDevice {
 public:
  std::vector<KernelCandidate> candidates(const Node& node) const override {
    if (node.operator_name() != "multiply") return CountingDevice::candidates(node);
    const auto plan = [this](const KernelRequest& request) {
      return KernelMaker(
          [this, &request] { return std::make_unique<PackingProduct>(request, layout_, packed_); });
    };
    return {{.name = "packing", .plan = plan}};
  }
  std::string layout_ = "as it is";
  mutable int packed_ = 0;  // times
};

// Two products with one weight, and one with what is made of it.
std::unique_ptr<Graph> graph_of(int64_t rows) {
  return parse_graph(fmt::format(R"(graph g(input %x: fp32[{0}, 64], parameter %w: fp32[64]) {{
  %e = exp(%w)
  %a = multiply(%x, %w)
  %b = multiply(%a, %w)
  %y = multiply(%b, %e)
  output y = %y
}})",
                                 rows));
}

std::unique_ptr<Executable> compile_rows(const std::shared_ptr<Device>& device, int64_t rows) {
  CompileOptions options;
  options.passes.frozen = true;
  options.passes.fuse = false;
  return compile(*graph_of(rows), device, options);
}

Tensor weights(uint64_t seed) {
  return random_tensor(DataType::fp32, {kColumns}, 0.5, 1, seed);
}

Tensor run(Executable& executable, int64_t rows) {
  return executable.run({{"x", random_tensor(DataType::fp32, {rows, kColumns}, -1, 1, 5)}}).at("y");
}

Tensor expected(int64_t rows, const Tensor& w) {
  const auto device = Device::reference();
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", w);
  const auto executable = compile_rows(device, rows);
  executable->bind(variables);
  return run(*executable, rows);
}

class PackedInputs : public ::testing::Test {
 protected:
  PackedInputs() { variables_->set("w", weights(1)); }
  std::unique_ptr<Executable> bind(int64_t rows) const {
    auto executable = compile_rows(device_, rows);
    executable->bind(variables_);
    return executable;
  }
  // Of what is made of the variable.
  int64_t made_bytes(std::initializer_list<const Executable*> executables) const {
    int64_t bytes = device_->live_bytes() - kBytes;
    for (const Executable* executable : executables) bytes -= executable->memory_plan().peak_bytes;
    return bytes;
  }
  std::shared_ptr<PackingDevice> device_ = std::make_shared<PackingDevice>();
  std::shared_ptr<Variables> variables_ = std::make_shared<Variables>(device_);
};

TEST_F(PackedInputs, AreCountedInThePlan) {
  const MemoryPlan plan = compile_rows(device_, 4)->memory_plan();
  EXPECT_EQ(plan.packed_bytes, 2 * kBytes);  // the weight and what is made of it
  EXPECT_EQ(plan.persistent_bytes, 3 * kBytes);
  std::vector<std::string> names;
  for (const DerivedValue& value : plan.derived)
    names.push_back(fmt::format("{} for '{}': {}", value.name, value.packed_for, value.bytes));
  EXPECT_EQ(names,
            (std::vector<std::string>{"e for '': 256", "w for 'packing': 256", "e for 'packing': 256"}));
  EXPECT_EQ(device_->packed_, 0) << "nothing is bound yet";
}

TEST_F(PackedInputs, AreMadeOnceForExecutablesOverTheSameVariables) {
  const auto four = bind(4);
  EXPECT_EQ(device_->packed_, 2);
  const auto eight = bind(8);
  EXPECT_EQ(device_->packed_, 2);
  EXPECT_EQ(made_bytes({four.get(), eight.get()}), 3 * kBytes);
  EXPECT_TRUE(run(*four, 4).identical(expected(4, weights(1))));
  EXPECT_TRUE(run(*eight, 8).identical(expected(8, weights(1))));
}

TEST_F(PackedInputs, AreMadeAgainWhenAVariableIsSet) {
  const auto four = bind(4);
  const auto eight = bind(8);
  variables_->set("w", weights(2));
  eight->bind(variables_);
  EXPECT_EQ(device_->packed_, 4);
  EXPECT_TRUE(run(*eight, 8).identical(expected(8, weights(2))));
  // The other keeps what it made, and reads the packed weight alone.
  EXPECT_TRUE(run(*four, 4).identical(expected(4, weights(1))));
  EXPECT_EQ(made_bytes({four.get(), eight.get()}), 6 * kBytes);
  four->bind(variables_);
  EXPECT_EQ(device_->packed_, 4);
  EXPECT_TRUE(run(*four, 4).identical(expected(4, weights(2))));
  EXPECT_EQ(made_bytes({four.get(), eight.get()}), 3 * kBytes);
}

TEST_F(PackedInputs, AreMadeAgainWhenATrainingStepHasRun) {
  const auto four = bind(4);
  const auto step = compile(*parse_graph(R"(graph step(input %d: fp32[64], parameter %w: fp32[64]) {
  %next = add(%w, %d)
  update %w = %next
})"),
                            device_);
  step->bind(variables_);
  step->run({{"d", Tensor::full(DataType::fp32, {kColumns}, 0.25)}});
  four->bind(variables_);
  EXPECT_EQ(device_->packed_, 4);
  EXPECT_TRUE(run(*four, 4).identical(expected(4, variables_->get("w"))));
}

TEST_F(PackedInputs, AreKeptWhenNothingHasChanged) {
  const auto four = bind(4);
  four->bind(variables_);
  EXPECT_EQ(device_->packed_, 2);
}

TEST_F(PackedInputs, OfOtherLayoutsAreOthers) {
  const auto four = bind(4);
  device_->layout_ = "as it was";
  const auto eight = bind(8);
  EXPECT_EQ(device_->packed_, 4);
  EXPECT_EQ(made_bytes({four.get(), eight.get()}), 5 * kBytes);  // what is made of the weight is one
}

TEST_F(PackedInputs, OfLayoutsWithoutATextAreEachKernelsOwn) {
  device_->layout_ = "";
  const auto four = bind(4);
  EXPECT_EQ(device_->packed_, 3);
  const auto eight = bind(8);
  EXPECT_EQ(device_->packed_, 6);
  EXPECT_EQ(four->memory_plan().packed_bytes, 3 * kBytes);
  EXPECT_EQ(made_bytes({four.get(), eight.get()}), 7 * kBytes);
  EXPECT_TRUE(run(*four, 4).identical(expected(4, weights(1))));
}

TEST_F(PackedInputs, GoWithTheLastExecutable) {
  auto four = bind(4);
  auto eight = bind(8);
  four.reset();
  EXPECT_TRUE(run(*eight, 8).identical(expected(8, weights(1))));
  eight.reset();
  EXPECT_EQ(made_bytes({}), 0);
}

TEST_F(PackedInputs, OfOwnVariablesAreMadeToo) {
  const auto four = compile_rows(device_, 4);
  four->load([](const std::string&) { return std::optional<Tensor>(weights(3)); });
  EXPECT_EQ(device_->packed_, 2);
  EXPECT_TRUE(run(*four, 4).identical(expected(4, weights(3))));
}

}  // namespace
}  // namespace tessera::testing
