// Parts of values and joined values without copies: where, where not, and that results stay the same.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"
#include "tessera/graph/graph.h"

#include "support/random_tensor.h"

namespace tessera {
namespace {

// The reference's loops on memory that is aligned as little or as much as asked for.
class AlignedDevice : public HostMemoryDevice {
 public:
  explicit AlignedDevice(int64_t alignment) : alignment_(alignment) {}
  DeviceDescription description() const override { return {.name = "aligned", .versions = {}}; }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
  int64_t memory_alignment() const override { return alignment_; }

 private:
  int64_t alignment_;
};

struct Outcome {
  std::vector<std::map<std::string, Tensor>> runs;
  std::map<std::string, Tensor> variables;
};

Outcome run_twice(Executable& executable, const Graph& graph, const std::shared_ptr<Device>& device) {
  auto variables = std::make_shared<Variables>(device);
  uint64_t seed = 1;
  std::map<std::string, Tensor> inputs;
  for (const auto& input : graph.inputs()) {
    const Tensor value =
        testing::random_tensor(input->data_type(), input->type().static_shape(), -1, 1, seed++);
    input->role() == InputRole::input ? void(inputs[input->name()] = value)
                                      : variables->set(input->name(), value);
  }
  executable.bind(variables);
  Outcome outcome;
  for (int run = 0; run < 2; ++run) {
    outcome.runs.push_back(executable.run(inputs));
    // Of another place in the host's memory.
    for (auto& [name, tensor] : inputs) tensor = tensor.clone();
  }
  for (const std::string& name : variables->names()) outcome.variables[name] = variables->get(name);
  return outcome;
}

bool equal(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.identical(right.second);
  });
}

// Compiled for a device that wants `alignment`; runs must give the bits of those in which each value has
// memory of its own and nothing is a part of another, also when what is freed is poisoned, and when each
// node's results are looked at.
std::unique_ptr<Executable> check(const std::string& text, const CompileOptions& own = {},
                                  int64_t alignment = 64) {
  const auto graph = parse_graph(text);
  const auto device = std::make_shared<AlignedDevice>(alignment);
  CompileOptions options = own;
  options.plan_memory = false;
  const auto plain = compile(*graph, device, options);
  const Outcome expected = run_twice(*plain, *graph, device);
  options.plan_memory = true;
  for (const bool watched : {true, false}) {
    options.poison_freed = watched;
    options.check_finite = watched;
    auto executable = compile(*graph, device, options);
    verify(executable->memory_plan());
    const Outcome outcome = run_twice(*executable, *graph, device);
    for (size_t run = 0; run < expected.runs.size(); ++run)
      EXPECT_TRUE(equal(expected.runs[run], outcome.runs[run])) << text << (watched ? "\nwatched" : "");
    EXPECT_TRUE(equal(expected.variables, outcome.variables)) << text;
    if (!watched) return executable;
  }
  return nullptr;
}

int64_t count_kernels(const Executable& executable, const std::string& operator_name = "") {
  return std::count_if(executable.nodes().begin(), executable.nodes().end(), [&](const NodeReport& node) {
    return node.kernel != "alias" && !node.once &&
           (operator_name.empty() || node.operator_name == operator_name);
  });
}

std::string memory_of(const Executable& executable, const std::string& name) {
  for (const NodeReport& node : executable.nodes()) {
    if (node.name == name) return node.memory;
  }
  return "no such node";
}

// Products, since elementwise work would become one cluster.
std::string square(const std::string& x, const std::string& name) {
  return "  %" + name + " = matmul(%" + x + ", %w)\n";
}

const std::string kQueryKeyValue = R"(graph g(input %x: fp32[3, 16], parameter %w: fp32[16, 16]) {
  %all = matmul(%x, %w)
  %q, %k, %v = split(%all) {sizes = [1, 1, 1], axis = 0}
  %qw = matmul(%q, %w)
  %kw = matmul(%k, %w)
  %vw = matmul(%v, %w)
  output q = %qw
  output k = %kw
  output v = %vw
})";

TEST(Views, PartsOfASplitAreNotCopied) {
  const auto executable = check(kQueryKeyValue);
  EXPECT_EQ(count_kernels(*executable, "split"), 0);
  EXPECT_EQ(count_kernels(*executable), 4);
  EXPECT_EQ(memory_of(*executable, "q"), "part of 'all' at byte 0");
  // 'all' and three results; with copies three parts more.
  EXPECT_EQ(executable->memory_plan().peak_bytes, (3 + 3) * 64);
}

TEST(Views, BeginWhereTheDeviceWantsMemoryToBegin) {
  EXPECT_EQ(count_kernels(*check(kQueryKeyValue, {}, 256), "split"), 1);
  EXPECT_EQ(count_kernels(*check(R"(graph g(input %x: fp32[6, 8], parameter %w: fp32[8, 8]) {
  %all = matmul(%x, %w)
  %a = slice(%all) {starts = [2, 0], limits = [6, 8], strides = [1, 1]}
  %b = slice(%all) {starts = [1, 0], limits = [6, 8], strides = [1, 1]}
  %aw = matmul(%a, %w)
  %bw = matmul(%b, %w)
  output a = %aw
  output b = %bw
})"),
                          "slice"),
            1);
}

TEST(Views, OfWhatIsNotContiguousAreCopies) {
  const auto executable = check(R"(graph g(input %x: fp32[4, 16, 16], parameter %w: fp32[16, 16]) {
  %all = matmul(%x, %w)
  %columns = slice(%all) {starts = [0, 0, 0], limits = [4, 16, 8], strides = [1, 1, 1]}
  %strided = slice(%all) {starts = [0, 0, 0], limits = [4, 16, 16], strides = [2, 1, 1]}
  %rows = slice(%all) {starts = [1, 0, 0], limits = [3, 8, 16], strides = [1, 1, 1]}
  %part = slice(%all) {starts = [1, 4, 0], limits = [2, 8, 16], strides = [7, 1, 1]}
  output columns = %columns
  output strided = %strided
  output rows = %rows
  output part = %part
  output all = %all
})");
  EXPECT_EQ(count_kernels(*executable, "slice"), 3);
  EXPECT_EQ(memory_of(*executable, "part"), "part of 'all' at byte 1280");
}

TEST(Views, OfInputsAndVariablesAreReadWhereTheyLie) {
  const auto executable = check(R"(graph g(input %x: fp32[2, 16], parameter %w: fp32[32, 16]) {
  %xs = reshape(%x) {shape = [2, 1, 16]}
  %x0, %x1 = split(%xs) {sizes = [1, 1], axis = 0}
  %w0, %w1 = split(%w) {sizes = [16, 16], axis = 0}
  %a = reshape(%x0) {shape = [1, 16]}
  %b = reshape(%x1) {shape = [1, 16]}
  %y0 = matmul(%a, %w0)
  %y1 = matmul(%b, %w1)
  output y0 = %y0
  output y1 = %y1
  output x1 = %x1
  output w1 = %w1
})");
  EXPECT_EQ(count_kernels(*executable), 2);
  EXPECT_EQ(memory_of(*executable, "b"), "part of 'x' at byte 64");
  EXPECT_EQ(memory_of(*executable, "w0"), "part of 'w' at byte 0");
}

TEST(Views, OfFrozenWeightsAreNoSecondCopyOfThem) {
  CompileOptions options;
  options.passes.frozen = true;
  const auto executable = check(R"(graph g(input %x: fp32[2, 16], parameter %w: fp32[32, 16]) {
  %w0, %w1 = split(%w) {sizes = [16, 16], axis = 0}
  %y0 = matmul(%x, %w0)
  %y1 = matmul(%x, %w1)
  output y0 = %y0
  output y1 = %y1
})",
                                options);
  EXPECT_EQ(executable->memory_plan().persistent_bytes, 0);
}

TEST(Views, OfAParameterAreReadBeforeItIsUpdatedInPlace) {
  const auto executable = check(R"(graph g(input %x: fp32[2, 16], parameter %w: fp32[32, 16]) {
  %half = constant() {value = fp32[] (0.5)}
  %next = multiply(%w, %half)
  %w0, %w1 = split(%w) {sizes = [16, 16], axis = 0}
  %y0 = matmul(%x, %w0)
  %y1 = matmul(%x, %w1)
  output y0 = %y0
  output y1 = %y1
  update %w = %next
})");
  EXPECT_EQ(count_kernels(*executable), 3);
  // The results and the new weights, which the reference writes beside the old ones: no copy of their halves.
  EXPECT_EQ(executable->memory_plan().peak_bytes, 2 * 128 + 32 * 64);
}

TEST(Views, OfAVariableThatIsOverwrittenBeforeTheyAreReadAreCopies) {
  const auto executable = check(R"(graph g(input %x: fp32[2, 16], parameter %w: fp32[16, 16]) {
  %half = constant() {value = fp32[] (0.5)}
  %top = slice(%w) {starts = [0, 0], limits = [8, 16], strides = [1, 1]}
  %next = multiply(%w, %half)
  %rows = matmul(%top, %next)
  output rows = %rows
  update %w = %next
})");
  EXPECT_EQ(count_kernels(*executable, "slice"), 1);
}

TEST(Views, OfAVariableThatItsUpdateReadsAreCopies) {
  const auto executable = check(R"(graph g(state %s: fp32[4, 16]) {
  %last = slice(%s) {starts = [3, 0], limits = [4, 16], strides = [1, 1]}
  %row = reshape(%last) {shape = [16]}
  %next = multiply(%s, %row)
  update %s = %next
})");
  EXPECT_EQ(count_kernels(*executable, "slice"), 1);
}

TEST(Views, OfAStateThatAreOutputsOrUpdatesSeeTheOldValue) {
  check(R"(graph g(input %x: fp32[4, 16], state %s: fp32[4, 16], state %t: fp32[1, 16]) {
  %last = slice(%s) {starts = [3, 0], limits = [4, 16], strides = [1, 1]}
  %first = slice(%s) {starts = [0, 0], limits = [1, 16], strides = [1, 1]}
  %next = add(%s, %x)
  output first = %first
  update %s = %next
  update %t = %last
})");
}

// What is joined is made in its place.
TEST(Views, JoinedValuesAreMadeInTheirPlaces) {
  const auto executable =
      check("graph g(input %x: fp32[1, 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") +
            square("a", "b") + square("b", "c") + "  %all = concat(%a, %b, %c) {axis = 0}\n" +
            square("all", "y") + "  output y = %y\n  output b = %b\n}");
  EXPECT_EQ(count_kernels(*executable), 4);
  EXPECT_EQ(memory_of(*executable, "all"), "holds its operands");
  EXPECT_EQ(executable->memory_plan().peak_bytes, (3 + 3) * 64);
}

TEST(Views, AChainOfJoinsIsOneBlock) {
  const auto executable = check(
      "graph g(input %x: fp32[1, 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") + square("a", "b") +
      "  %ab = concat(%a, %b) {axis = 0}\n" + square("ab", "c") + "  %abc = concat(%ab, %c) {axis = 0}\n" +
      square("abc", "d") + "  %all = concat(%abc, %d) {axis = 0}\n  output y = %all\n}");
  EXPECT_EQ(count_kernels(*executable), 4);
  EXPECT_EQ(memory_of(*executable, "ab"), "part of 'all' at byte 0");
  EXPECT_EQ(executable->memory_plan().blocks.size(), 1u);
}

TEST(Views, ListsThatGrowShareTheLongest) {
  const auto executable =
      check("graph g(input %x: fp32[1, 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") +
            square("a", "b") + "  %ab = concat(%a, %b) {axis = 0}\n" + square("ab", "c") +
            "  %abc = concat(%a, %b, %c) {axis = 0}\n  %d = reduce_max(%abc) {axes = [0]}\n"
            "  %bc = concat(%b, %c) {axis = 0}\n  %e = reduce_max(%bc) {axes = [0]}\n"
            "  output d = %d\n  output e = %e\n}");
  EXPECT_EQ(count_kernels(*executable, "concat"), 0);
  EXPECT_EQ(memory_of(*executable, "abc"), "holds its operands");
  EXPECT_EQ(memory_of(*executable, "ab"), "part of 'abc' at byte 0");
  EXPECT_EQ(memory_of(*executable, "bc"), "part of 'abc' at byte 64");
}

TEST(Views, ASplitThatIsJoinedAgainIsWhatItWas) {
  const auto executable = check(
      "graph g(input %x: fp32[2, 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") +
      "  %p, %q = split(%a) {sizes = [1, 1], axis = 0}\n" + square("p", "pw") +
      "  %again = concat(%p, %q) {axis = 0}\n  %other = concat(%q, %p) {axis = 0}\n" + square("again", "y") +
      square("other", "z") + "  output y = %y\n  output z = %z\n  output p = %pw\n}");
  EXPECT_EQ(count_kernels(*executable, "concat"), 1);
}

TEST(Views, WhatCannotBeMadeInItsPlaceIsCopied) {
  const auto joined = [](const std::string& operands, const std::string& more = "") {
    return count_kernels(
        *check("graph g(input %x: fp32[1, 16], parameter %w: fp32[16, 16], state %s: fp32[1, 16]) {\n" +
               square("x", "a") + square("a", "b") + "  %p, %q = split(%w) {sizes = [8, 8], axis = 0}\n" +
               more + "  %y = concat(" + operands + ") {axis = 0}\n  output y = %y\n}"),
        "concat");
  };
  EXPECT_EQ(joined("%a, %b"), 0);
  EXPECT_EQ(joined("%x, %b"), 1);
  EXPECT_EQ(joined("%a, %s"), 1);
  EXPECT_EQ(joined("%q, %a"), 1);
  EXPECT_EQ(joined("%a, %a"), 1);
  EXPECT_EQ(joined("%p, %q"), 1);  // a parameter's own memory is not its reader's
  EXPECT_EQ(joined("%a, %b", "  %other = concat(%b, %a) {axis = 0}\n  output z = %other\n"), 1);
}

TEST(Views, JoinsAlongInnerAxesAndOfShortRowsAreCopies) {
  EXPECT_EQ(count_kernels(
                *check("graph g(input %x: fp32[2, 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") +
                       square("a", "b") + "  %y = concat(%a, %b) {axis = 1}\n  output y = %y\n}"),
                "concat"),
            1);
  EXPECT_EQ(
      count_kernels(*check("graph g(input %x: fp32[1, 8], parameter %w: fp32[8, 8]) {\n" + square("x", "a") +
                           square("a", "b") + "  %y = concat(%a, %b) {axis = 0}\n  output y = %y\n}"),
                    "concat"),
      1);
}

TEST(Views, AnUpdateThatIsJoinedIsWrittenAsBefore) {
  const auto executable =
      check("graph g(input %x: fp32[1, 16], parameter %w: fp32[16, 16], state %s: fp32[2, 16]) {\n" +
            square("x", "a") + square("a", "b") +
            "  %next = concat(%a, %b) {axis = 0}\n  %old = matmul(%s, %w)\n  output y = %old\n  update %s = "
            "%next\n}");
  EXPECT_EQ(count_kernels(*executable, "concat"), 1);
}

TEST(Views, CachesThatMoveUpStayRight) {
  check(R"(graph g(input %x: fp32[1, 16], parameter %w: fp32[16, 16], state %cache: fp32[4, 16]) {
  %new = matmul(%x, %w)
  %kept = slice(%cache) {starts = [1, 0], limits = [4, 16], strides = [1, 1]}
  %next = concat(%kept, %new) {axis = 0}
  %read = matmul(%next, %w)
  output read = %read
  update %cache = %next
})");
}

TEST(Views, EmptyPartsLieAnywhere) {
  const auto executable =
      check("graph g(input %x: fp32[2, 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") +
            "  %none, %all = split(%a) {sizes = [0, 2], axis = 0}\n" + square("all", "b") +
            square("none", "n") + "  %y = concat(%n, %b) {axis = 0}\n  output y = %y\n}");
  EXPECT_EQ(count_kernels(*executable, "split"), 0);
  EXPECT_EQ(count_kernels(*executable, "concat"), 0);
}

// A row of a large value is wanted at the end, when as much else is in memory.
TEST(Views, WhatWouldKeepTooMuchIsCopied) {
  const auto text = [](const std::string& width) {
    return "graph g(input %x: fp32[64, 16], input %z: fp32[" + width +
           ", 16], parameter %w: fp32[16, 16]) {\n" + square("x", "a") +
           "  %row = slice(%a) {starts = [1, 0], limits = [2, 16], strides = [1, 1]}\n" + square("a", "aw") +
           "  %sum = reduce_sum(%aw) {axes = [0]}\n" + square("z", "b") + square("b", "c") +
           "  %rest = matmul(%row, %c) {transpose_b = true}\n" +
           "  output sum = %sum\n  output rest = %rest\n}";
  };
  const auto large = check(text("64"));
  EXPECT_EQ(count_kernels(*large, "slice"), 1);
  const auto small = check(text("8"));
  EXPECT_EQ(count_kernels(*small, "slice"), 0);
}

TEST(Views, OutputsOnTheDeviceAreParts) {
  const auto graph = parse_graph(kQueryKeyValue);
  graph->add_output("part", graph->find("k"));
  const auto device = std::make_shared<AlignedDevice>(64);
  const auto executable = compile(*graph, device);
  const Outcome outcome = run_twice(*executable, *graph, device);
  EXPECT_TRUE(executable->output("part").to_host().identical(outcome.runs.back().at("part")));
}

}  // namespace
}  // namespace tessera
