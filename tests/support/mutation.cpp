#include "support/mutation.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "support/rounding.h"
#include "support/unfused.h"

namespace tessera::testing {
namespace {

constexpr Mutation kAll[] = {Mutation::zeros, Mutation::left_out_row, Mutation::dropped_operand,
                             Mutation::wrong_rounding};

std::vector<Tensor> with_one(std::vector<Tensor> results, size_t index, Tensor replacement) {
  results[index] = std::move(replacement);
  return results;
}

// To nearest, with so many digits of the significand.
Tensor with_digits(const Tensor& tensor, int digits) {
  std::vector<double> values = tensor.to_doubles();
  for (double& value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    const double unit = std::ldexp(1.0, std::ilogb(value) - digits + 1);
    value = std::nearbyint(value / unit) * unit;
  }
  return Tensor::from_doubles(tensor.data_type(), tensor.shape(), values);
}

// Of what a wrong kernel would take instead of the type.
int wrong_digits(DataType type, bool tf32) {
  if (type == DataType::fp64) return 24;
  return tf32 ? 8 : 11;
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].identical(b[i])) return false;
  }
  return true;
}

// Bytes as memory has them before a kernel writes: whatever they are, they are not what it would have
// written. A row of a packed type that is no whole byte takes the byte that holds its last element.
Tensor with_unwritten_row(const Tensor& tensor) {
  Tensor result = tensor.clone();
  const Shape& shape = tensor.shape();
  const size_t rows = shape.empty() ? 1 : static_cast<size_t>(shape[0]);
  const size_t row = std::max<size_t>(1, tensor.bytes() / rows);
  auto* begin = static_cast<unsigned char*>(result.raw()) + tensor.bytes() - row;
  const int64_t last = tensor.size() - 1;
  for (const unsigned char filler : {0xff, 0x00}) {
    std::memset(begin, filler, row);
    if (result.at(last) != tensor.at(last)) break;  // NaN differs from everything
  }
  return result;
}

class Mutator {
 public:
  explicit Mutator(const MutationSubject& subject) : subject_(subject), wide_(widened(subject.graph)) {}

  std::vector<MutatedRun> all() {
    const auto is_empty = [](const Tensor& result) { return result.size() == 0; };
    if (std::all_of(subject_.honest.begin(), subject_.honest.end(), is_empty)) return {};
    for (const Mutation mutation : mutations()) {
      if (mutation == Mutation::zeros) zeros();
      if (mutation == Mutation::left_out_row) left_out_row();
      if (mutation == Mutation::dropped_operand) dropped_operand();
      if (mutation == Mutation::wrong_rounding) wrong_rounding();
    }
    return std::move(runs_);
  }

 private:
  void add(Mutation mutation, std::string text, std::vector<Tensor> results) {
    runs_.push_back({mutation, std::move(text), std::move(results)});
  }

  std::string output(size_t index) const { return "output " + std::to_string(index); }

  void zeros() {
    for (size_t i = 0; i < subject_.honest.size(); ++i) {
      const Tensor& own = subject_.honest[i];
      if (own.size() == 0) continue;
      add(Mutation::zeros, output(i), with_one(subject_.honest, i, Tensor(own.data_type(), own.shape())));
    }
  }

  void left_out_row() {
    const std::vector<OperandFault> faults = left_out_rows(subject_.graph);
    for (const OperandFault& fault : faults) add_fault(Mutation::left_out_row, fault);
    if (!faults.empty()) return;
    for (size_t i = 0; i < subject_.honest.size(); ++i) {
      if (subject_.honest[i].size() == 0) continue;
      add(Mutation::left_out_row, "an unwritten row of " + output(i),
          with_one(subject_.honest, i, with_unwritten_row(subject_.honest[i])));
    }
  }

  void dropped_operand() {
    for (const OperandFault& fault : dropped_operands(subject_.graph))
      add_fault(Mutation::dropped_operand, fault);
  }

  void wrong_rounding() {
    for (size_t i = 0; i < subject_.honest.size(); ++i) round_results(i);
    round_products();
  }

  // Where nothing has to be rounded, or too few elements, it is not wrong.
  void round_results(size_t i) {
    const Tensor& own = subject_.honest[i];
    const DataType type = own.data_type();
    if (!is_floating(type)) return;
    if (is_half(type)) {
      if (rounding_errors(own, subject_.exact[i]).elements < kFewestRounded) return;
      const std::vector<double> nearest = subject_.exact[i].cast(type).to_doubles();
      const std::vector<double> lower = truncated(subject_.exact[i], type).to_doubles();
      Tensor result = own.clone();
      for (int64_t e = 0; e < own.size(); ++e) {
        const double moved = lower[static_cast<size_t>(e)] - nearest[static_cast<size_t>(e)];
        if (moved != 0) result.set(e, own.at(e) + moved);
      }
      add(Mutation::wrong_rounding, "truncated " + output(i), with_one(subject_.honest, i, result));
      return;
    }
    // One number may happen to be the same with fewer digits.
    constexpr int64_t kFewest = 8;
    if (own.size() < kFewest || is_of_rounded(*subject_.graph.outputs()[i].value)) return;
    const Tensor result = with_digits(own, wrong_digits(type, subject_.tf32));
    if (result.identical(own)) return;
    add(Mutation::wrong_rounding, "too few digits in " + output(i), with_one(subject_.honest, i, result));
  }

  // Whether what it is made of may differ by as much: by what was rounded to 16 bits, or by products in TF32,
  // whose operands are what counts.
  bool is_of_rounded(const Value& output) const {
    std::vector<const Value*> open{&output};
    std::set<const Value*> seen;
    while (!open.empty()) {
      const Value* value = open.back();
      open.pop_back();
      const Node* node = value->producer();
      if (node == nullptr || !seen.insert(value).second) continue;
      const bool product = node->schema().operator_class == OperatorClass::contraction;
      if (is_half(value->data_type()) || (subject_.tf32 && product)) return true;
      open.insert(open.end(), node->inputs().begin(), node->inputs().end());
    }
    return false;
  }

  void round_products() {
    for (const auto& node : subject_.graph.nodes()) {
      if (node->schema().operator_class != OperatorClass::contraction) continue;
      const DataType type = node->input(0)->data_type();
      if (!is_floating(type) || is_half(type) || node->input(0)->type().element_count() == 0) continue;
      const int digits = wrong_digits(type, subject_.tf32);
      add_fault(Mutation::wrong_rounding,
                {.text = "too few digits in what enters " + print(*node),
                 .node = node.get(),
                 .operand = 0,
                 .alter = [digits](const Tensor& operand) { return with_digits(operand, digits); },
                 .own_axes = {}});
    }
  }

  // On the device itself where what is altered is an input that nothing else reads.
  void add_fault(Mutation mutation, const OperandFault& fault) {
    const Value* operand = fault.node->input(fault.operand);
    std::vector<Tensor> results;
    if (operand->producer() == nullptr && operand->uses().size() == 1) {
      std::vector<Tensor> inputs = subject_.inputs;
      inputs[operand->index()] = fault.alter(inputs[operand->index()]);
      if (mutation == Mutation::wrong_rounding &&
          inputs[operand->index()].identical(subject_.inputs[operand->index()])) {
        return;
      }
      results = subject_.run(inputs);
    } else {
      results = simulated(fault);
    }
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = without_own(fault, results[i], subject_.honest[i]);
    if (mutation == Mutation::wrong_rounding && same(results, subject_.honest)) return;
    add(mutation, fault.text, std::move(results));
  }

  // What the device computed, moved by as much as the fault moves the reference.
  std::vector<Tensor> simulated(const OperandFault& fault) {
    const Graph& graph = wide_ ? *wide_ : subject_.graph;
    SimulatedFaults& known = subject_.simulated;
    if (known.right.empty()) known.right = interpret(graph, subject_.inputs);
    const size_t number = simulated_++;
    if (number == known.wrong.size()) {
      known.wrong.push_back(
          interpret(graph, subject_.inputs, [&](const Node& node, size_t index, const Tensor& operand) {
            const bool meant = node.name() == fault.node->name() && index == fault.operand;
            return meant ? fault.alter(operand) : operand;
          }));
    }
    const std::vector<Tensor>& wrong = known.wrong.at(number);
    std::vector<Tensor> results;
    for (size_t i = 0; i < wrong.size(); ++i) {
      Tensor& result = results.emplace_back(subject_.honest[i].clone());
      const std::vector<double> own = result.to_doubles(), there = wrong[i].to_doubles(),
                                right = known.right[i].to_doubles();
      for (size_t e = 0; e < own.size(); ++e) {
        const double moved = there[e] - right[e];
        if (moved != 0) result.set(static_cast<int64_t>(e), std::isfinite(moved) ? own[e] + moved : there[e]);
      }
    }
    return results;
  }

  const MutationSubject& subject_;
  std::unique_ptr<Graph> wide_;
  size_t simulated_ = 0;  // how many faults so far
  std::vector<MutatedRun> runs_;
};

// Of the operators that do more than one element's arithmetic.
std::string family_of(const OperatorSchema& schema) {
  const std::string& name = schema.name;
  switch (schema.operator_class) {
    case OperatorClass::contraction:
      if (name.find("attention") != std::string::npos) return "attention";
      return name == "matmul" ? "matmul" : name;
    case OperatorClass::normalization:
      return name.ends_with("softmax") ? "softmax" : "normalization";
    case OperatorClass::loss:
      return "losses";
    case OperatorClass::reduction:
      return "reductions";
    case OperatorClass::pooling:
      return "pooling";
    case OperatorClass::indexing:
      return "indexing";
    case OperatorClass::movement:
    case OperatorClass::communication:
      return "movement";
    case OperatorClass::source:
      return "sources";
    default:
      return name == "binary_cross_entropy" ? "losses" : "elementwise";
  }
}

}  // namespace

std::string word_for(Mutation mutation) {
  switch (mutation) {
    case Mutation::zeros:
      return "zeros";
    case Mutation::left_out_row:
      return "left_out_row";
    case Mutation::dropped_operand:
      return "dropped_operand";
    case Mutation::wrong_rounding:
      return "wrong_rounding";
  }
  return "";
}

const std::set<Mutation>& mutations() {
  static const std::set<Mutation> asked = [] {
    std::set<Mutation> result;
    const char* text = std::getenv("TESSERA_TEST_MUTATION");
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
      const std::string word = rest.substr(0, rest.find(','));
      rest = word.size() < rest.size() ? rest.substr(word.size() + 1) : "";
      bool known = false;
      for (const Mutation mutation : kAll) {
        if (word != word_for(mutation)) continue;
        known = true;
        result.insert(mutation);
      }
      require(known, ErrorCode::invalid_argument,
              "TESSERA_TEST_MUTATION: there is no mutation '{}' (zeros, left_out_row, dropped_operand, "
              "wrong_rounding)",
              word);
    }
    return result;
  }();
  return asked;
}

std::vector<MutatedRun> mutated_runs(const MutationSubject& subject) {
  return Mutator(subject).all();
}

std::string family_of(const Graph& graph, const std::string& fused_kind) {
  if (!fused_kind.empty()) return "fused " + fused_kind;
  std::set<std::string> families;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() != "constant" || graph.nodes().size() == 1)
      families.insert(family_of(node->schema()));
  }
  return families.size() == 1 ? *families.begin() : "clusters";
}

std::set<std::string> record_families(const Device& device) {
  std::set<std::string> families;
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) families.insert(family_of(*schema));
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
    const PassTarget target = device.pass_target({.precision = precision});
    for (const FusionPattern& pattern : target.patterns) families.insert("fused " + pattern.kind);
    if (target.values_per_group > 0) families.insert(std::string("fused ") + kClustersKind);
  }
  ::testing::Test::RecordProperty("families", nlohmann::json(families).dump());
  return families;
}

void record_mutation(Mutation mutation, const std::string& family, bool noticed, const std::string& what) {
  using Json = nlohmann::json;
  static std::map<std::string, Json> tallies;  // of the running test
  static const ::testing::TestInfo* running = nullptr;
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test != running) tallies.clear();
  running = test;
  const std::string key = fmt::format("{}: {}", word_for(mutation), family);
  Json& tally = tallies.try_emplace(key, Json{{"noticed", 0}, {"unnoticed", Json::array()}}).first->second;
  if (noticed) {
    tally["noticed"] = tally["noticed"].get<int>() + 1;
  } else {
    tally["unnoticed"].push_back(what);
  }
  ::testing::Test::RecordProperty(key, tally.dump());
}

}  // namespace tessera::testing
