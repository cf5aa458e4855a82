// Modules in graphs that somebody else owns.
#include <set>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "program/program_test.h"
#include "support/expect_failure.h"

namespace tessera::program {
namespace {

using testing::expect_error;

// Notes what it is asked for.
class Owner : public GraphOwner {
 public:
  Graph& graph() override { return graph_; }
  bool trains() const override { return false; }
  Value* variable(const std::string& name, const Tensor& contents, bool is_statistic) override {
    asked.insert(name + (is_statistic ? " (statistic)" : ""));
    if (Value* known = graph_.find_input(name)) return known;
    return graph_.add_input(InputRole::parameter, name,
                            {contents.data_type(), to_symbolic(contents.shape())});
  }
  Value* batch_norm(const std::string&, Value* x, const BatchNorm&) override { return x; }
  Value* dropout(Value* x, double) override { return x; }

  std::set<std::string> asked;

 private:
  Graph graph_;
};

const TensorType kOpen{DataType::fp32, {Dimension::symbol("n")}};

// y = x + (a + b), whose sum would be folded for inference.
Block sums() {
  Block block;
  block.name = "main";
  block.inputs = {declare("x", kOpen)};
  block.outputs = {declare("y", kOpen)};
  block.constants = {{"a", numbers({2})}, {"b", numbers({3})}};
  block.instructions = {instruction("add", {"a", "b"}, {"w"}), instruction("add", {"x", "w"}, {"y"})};
  return block;
}

TEST(Build, ConstantsBecomeTheOwnersVariables) {
  const Runner runner(module_of(sums()), reference_options());
  Owner owner;
  Value* x = owner.graph().add_input(InputRole::input, "x", {DataType::fp32, {4}});
  owner.graph().add_output("y", runner.build({{"x", ops::negate(x)}}, owner).at("y"));
  EXPECT_EQ(owner.asked, (std::set<std::string>{"a", "b"}));
  EXPECT_NO_THROW(verify(owner.graph()));
  const ReferenceResult result =
      run_reference(owner.graph(), std::vector<Tensor>{numbers({1, 2, 3, 4}), numbers({10}), numbers({100})});
  EXPECT_EQ(result.outputs.at(0).to_doubles(), (std::vector<double>{109, 108, 107, 106}));
}

TEST(Build, AnyExtentMayBeOpen) {
  const Runner runner(module_of(sums()), reference_options());
  Owner owner;
  Value* x = owner.graph().add_input(InputRole::input, "x", kOpen);
  Value* y = runner.build({{"x", x}}, owner).at("y");
  EXPECT_EQ(y->type(), kOpen);
  EXPECT_EQ(owner.asked, (std::set<std::string>{"a", "b"}));
}

TEST(Build, RefusesWhatDependsOnAnOpenExtent) {
  Block block = sums();
  block.instructions.push_back(instruction("length", {"x"}, {"n"}));
  block.instructions.push_back(instruction("take", {"y", "n"}, {"whole"}));
  block.outputs = {declare("whole", kOpen)};
  const Runner runner(module_of(std::move(block)), reference_options());
  Owner fixed;
  Value* x = fixed.graph().add_input(InputRole::input, "x", {DataType::fp32, {4}});
  EXPECT_EQ(runner.build({{"x", x}}, fixed).at("whole")->shape(), SymbolicShape{4});
  Owner open;
  Value* any = open.graph().add_input(InputRole::input, "x", kOpen);
  expect_error(ErrorCode::unsupported, "'limits' depends on", [&] { runner.build({{"x", any}}, open); });
}

TEST(Build, GivesInputsBackAndRefusesConstants) {
  Block block = sums();
  block.outputs = {declare("x", kOpen)};
  Owner owner;
  Value* x = owner.graph().add_input(InputRole::input, "x", {DataType::fp32, {4}});
  EXPECT_EQ(Runner(module_of(block), reference_options()).build({{"x", x}}, owner).at("x"), x);
  block.outputs = {declare("a", kOpen)};
  expect_error(ErrorCode::unsupported, "no node makes the output 'a'", [&] {
    Runner(module_of(block), reference_options()).build({{"x", x}}, owner);
  });
}

TEST(Build, RefusesWhatIsNoSingleGraph) {
  Block block = sums();
  block.instructions.push_back(instruction("positive", {"y"}, {"some"}));
  block.outputs = {declare("some", kOpen)};
  const Runner runner(module_of(std::move(block)), reference_options());
  Owner owner;
  Value* x = owner.graph().add_input(InputRole::input, "x", {DataType::fp32, {4}});
  expect_error(ErrorCode::unsupported, "is no single graph", [&] { runner.build({{"x", x}}, owner); });
  expect_error(ErrorCode::invalid_argument, "'x'", [&] { runner.build({}, owner); });
}

}  // namespace
}  // namespace tessera::program
