// Random graphs: what every compilation of them computes is what the reference interpreter computes.
//
// TESSERA_GRAPH_SEED=N runs one seed, TESSERA_GRAPH_SEEDS=FIRST-LAST those seeds however long it takes
// (without: as many of the first as fit into the time).
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/compile/executable.h"

#include "graph_fuzz/generator.h"

namespace tessera::testing {
namespace {

constexpr double kSeconds = 15;
constexpr uint64_t kSeeds = 300;
constexpr int kShakes = 4;

// Outputs and, named "next NAME", the new values of what is updated.
using Results = std::map<std::string, Tensor>;

bool is_exact(const Node& node) {
  static const std::set<std::string, std::less<>> kSelecting{
      "reduce_max", "reduce_min", "max_pool", "maximum", "minimum", "select", "top_k"};
  const OperatorClass kind = node.schema().operator_class;
  return kind == OperatorClass::movement || kind == OperatorClass::source ||
         kSelecting.contains(node.operator_name());
}

// The reference interpreter. With `shake`, each node's result is moved by some units in the last place: how
// far that carries is how well-conditioned the graph is, kinks and ties included. What only moves or selects
// values is exact: the gradient of a maximum looks for elements that equal it.
Results interpret(const RandomGraph& own, uint64_t shake) {
  std::unordered_map<const Value*, Tensor> values;
  for (const auto& input : own.graph->inputs()) values[input.get()] = own.values.at(input->name());
  const Random random(shake, 5);
  uint64_t drawn = 0;
  for (const auto& node : own.graph->nodes()) {
    std::vector<const Tensor*> inputs;
    for (const Value* value : node->inputs()) inputs.push_back(&values.at(value));
    std::vector<Tensor> outputs = run_reference(*node, inputs);
    const bool exact = is_exact(*node);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (shake > 0 && !exact && outputs[i].data_type() == DataType::fp32) {
        double largest = 0;
        for (float& x : outputs[i].data<float>())
          largest = std::max(largest, static_cast<double>(std::abs(x)));
        for (float& x : outputs[i].data<float>()) {
          const double unit = 2.0 * random.uniform(drawn++) - 1;
          if (x != 0 && std::isfinite(x))
            x += static_cast<float>(unit * 4e-7 * (std::abs(x) + 0.1 * largest));
        }
      }
      values[node->output(i)] = std::move(outputs[i]);
    }
  }
  Results results;
  for (const auto& [name, value] : own.graph->outputs()) results[name] = values.at(value);
  for (const auto& [state, next] : own.graph->updates()) results["next " + state->name()] = values.at(next);
  return results;
}

Results run(const RandomGraph& own, const CompileOptions& options) {
  const auto executable = compile(*own.graph, Device::cpu(), options);
  auto variables = std::make_shared<Variables>(Device::cpu());
  std::map<std::string, Tensor> inputs;
  for (const auto& input : own.graph->inputs()) {
    const Tensor& value = own.values.at(input->name());
    if (input->role() == InputRole::input) {
      inputs[input->name()] = value;
    } else {
      variables->set(input->name(), value);
    }
  }
  executable->bind(variables);
  Results results = executable->run(inputs);
  for (const auto& [state, next] : own.graph->updates()) {
    results["next " + state->name()] = variables->get(state->name());
  }
  // A second run from the same start gives the same bits.
  for (const auto& input : own.graph->inputs()) {
    if (input->role() != InputRole::input) variables->set(input->name(), own.values.at(input->name()));
  }
  for (const auto& [name, tensor] : executable->run(inputs)) {
    EXPECT_TRUE(tensor.identical(results.at(name))) << name << " differs from run to run";
  }
  for (const auto& [state, next] : own.graph->updates()) {
    EXPECT_TRUE(variables->get(state->name()).identical(results.at("next " + state->name())))
        << "the new " << state->name() << " differs from run to run";
  }
  return results;
}

// Within what four shaken references disagree by, times some, and a floor.
void expect_close_to_reference(const Results& actual, const Results& reference,
                               const std::vector<Results>& shaken, const std::string& where) {
  for (const auto& [name, expected] : reference) {
    const Tensor& own = actual.at(name);
    ASSERT_EQ(own.shape(), expected.shape()) << where << " " << name;
    ASSERT_EQ(own.data_type(), expected.data_type()) << where << " " << name;
    double largest = 0;
    double spread = 0;
    bool finite = true;  // else 0/0 in a gradient: nothing to compare
    for (int64_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected.at(i)));
      for (const Results& other : shaken) {
        const double distance = std::abs(other.at(name).at(i) - expected.at(i));
        finite = finite && std::isfinite(distance);
        spread = std::max(spread, distance);
      }
    }
    if (!finite) continue;
    // The floor is for sums that cancel out wholly in the double precision of the reference.
    const double allowed = is_floating(expected.data_type()) ? 16 * spread + 2e-6 * largest + 1e-6 : spread;
    for (int64_t i = 0; i < expected.size(); ++i) {
      ASSERT_LE(std::abs(own.at(i) - expected.at(i)), allowed)
          << where << " " << name << ", element " << i << " of " << to_string(expected.shape()) << ": "
          << own.at(i) << ", expected " << expected.at(i);
    }
  }
}

void expect_identical(const Results& a, const Results& b, const std::string& where) {
  for (const auto& [name, tensor] : a) EXPECT_TRUE(tensor.identical(b.at(name))) << where << ": " << name;
}

void check(const RandomGraph& own) {
  verify(*own.graph);
  const std::string text = print(*own.graph);
  EXPECT_EQ(print(*parse_graph(text)), text);

  const Results reference = interpret(own, 0);
  std::vector<Results> shaken;
  for (uint64_t shake = 1; shake <= kShakes; ++shake) shaken.push_back(interpret(own, shake));
  for (const bool passes : {false, true}) {
    CompileOptions options;
    options.pipeline.verify = true;
    if (!passes) {
      for (const Pass& pass : pipeline(options.passes)) options.pipeline.disabled.insert(pass.name);
    }
    const std::string where = passes ? "with passes" : "without passes";
    options.poison_freed = true;
    const Results planned = run(own, options);
    expect_close_to_reference(planned, reference, shaken, where);
    options.poison_freed = false;
    options.plan_memory = false;
    expect_identical(run(own, options), planned, where + ", memory unplanned beside planned");
  }
}

// False after a failure, which it has made reproducible.
bool check_seed(uint64_t seed) {
  const int failures_before =
      ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  RandomGraph own;
  try {
    own = random_graph(seed);
    check(own);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  const auto* result = ::testing::UnitTest::GetInstance()->current_test_info()->result();
  if (result->total_part_count() == failures_before) return true;
  ADD_FAILURE() << "reproduce it by: TESSERA_GRAPH_SEED=" << seed << " ./test graph_fuzz\n"
                << (own.graph == nullptr ? "" : print(*own.graph));
  return false;
}

TEST(GraphFuzz, EveryCompilationComputesTheSame) {
  if (const char* seed = std::getenv("TESSERA_GRAPH_SEED")) {
    check_seed(std::strtoull(seed, nullptr, 10));
    return;
  }
  uint64_t seed = 1;
  uint64_t last = kSeeds;
  const char* asked = std::getenv("TESSERA_GRAPH_SEEDS");
  if (asked != nullptr) {
    char* rest = nullptr;
    seed = std::strtoull(asked, &rest, 10);
    ASSERT_EQ(*rest, '-') << "TESSERA_GRAPH_SEEDS is FIRST-LAST";
    last = std::strtoull(rest + 1, nullptr, 10);
  }
  const auto start = std::chrono::steady_clock::now();
  int tried = 0;
  for (; seed <= last; ++seed, ++tried) {
    if (!check_seed(seed)) break;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (asked == nullptr && passed.count() > kSeconds) break;
  }
  RecordProperty("seeds", tried);
  EXPECT_GE(tried, 1) << "no seed was tried, or the first one failed";
}

TEST(GraphFuzz, TheSameSeedGivesTheSameGraph) {
  EXPECT_EQ(print(*random_graph(7).graph), print(*random_graph(7).graph));
  EXPECT_NE(print(*random_graph(7).graph), print(*random_graph(8).graph));
}

}  // namespace
}  // namespace tessera::testing
