#include "graph_fuzz/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/base/random.h"

namespace tessera::testing {
namespace {

constexpr double kTf32Unit = 0x1p-11;
// Beside an element's own unit, that of terms which cancelled in it: some share of the largest element's.
constexpr double kShareOfLargest = 0.1;

// Whether the operator's results are its operands' elements, or have no other digits: nothing is rounded. The
// gradient of a maximum looks for elements that equal it, and a relu's mask for those above zero.
bool is_exact(const Node& node) {
  static const std::set<std::string, std::less<>> kSelecting{
      "reduce_max", "reduce_min", "max_pool", "maximum", "minimum",  "select", "top_k", "relu",
      "relu6",      "negate",     "sign",     "floor",   "absolute", "ceil",   "round", "is_finite"};
  const OperatorClass kind = node.schema().operator_class;
  if (node.operator_name() == "cast") {
    const DataType from = node.input(0)->data_type();
    return !is_floating(from) || size_of(from) < size_of(node.output()->data_type());
  }
  return kind == OperatorClass::movement || kind == OperatorClass::source ||
         kSelecting.contains(node.operator_name());
}

// Whether rounding has had a part in the value since it came into the graph: its producer rounds, or hands on
// what was rounded.
bool has_been_rounded(const Value& value) {
  std::set<const Value*> seen;
  std::vector<const Value*> open{&value};
  while (!open.empty()) {
    const Value* own = open.back();
    open.pop_back();
    if (own->producer() == nullptr || !is_floating(own->data_type()) || !seen.insert(own).second) continue;
    if (!is_exact(*own->producer())) return true;
    open.insert(open.end(), own->producer()->inputs().begin(), own->producer()->inputs().end());
  }
  return false;
}

// Twice what rounding does at most: a cluster of 16 bits rounds once where the reference rounds each node's
// result.
double relative_error(DataType type, const Shake& shake) {
  switch (type) {
    case DataType::fp32:
      return shake.fp32_error;
    case DataType::fp16:
      return 0x1p-10;
    case DataType::bf16:
      return 0x1p-7;
    default:
      return 0;
  }
}

// Half of the smallest numbers' distance.
double absolute_error(DataType type) {
  return type == DataType::fp16 ? 0x1p-24 : 0;
}

class Interpreter {
 public:
  explicit Interpreter(const Shake& shake) : shake_(shake), random_(shake.seed, 5) {}

  using Values = std::unordered_map<const Value*, Tensor>;

  void run(const Graph& graph, Values& values) {
    for (const auto& node : graph.nodes()) {
      if (node->body() != nullptr) {
        run_body(*node, values);
      } else {
        run_node(*node, values);
      }
    }
  }

 private:
  void run_body(const Node& node, Values& values) {
    const Graph& body = *node.body();
    Values inner;
    for (const auto& input : body.inputs()) inner[input.get()] = values.at(node.input(input->index()));
    in_body_ = true;
    run(body, inner);
    in_body_ = false;
    for (size_t i = 0; i < body.outputs().size(); ++i)
      values[node.output(i)] = inner.at(body.outputs()[i].value);
  }

  // What a cluster makes wide again it has never rounded: that was for those that read it in 16 bits.
  bool skips_rounding(const Node& node) const {
    return in_body_ && node.operator_name() == "cast" && is_exact(node) && has_been_rounded(*node.input(0));
  }

  void run_node(const Node& node, Values& values) {
    const bool shaken = shake_.seed > 0;
    const OperatorClass kind = node.schema().operator_class;
    const bool in_tf32 = shaken && shake_.tf32 && kind == OperatorClass::contraction;
    // What is summed may cancel, and each partial sum is rounded: an error of the terms, not of the result.
    const bool sums = shaken && kind == OperatorClass::reduction && !is_exact(node);
    std::vector<Tensor> rounded;
    rounded.reserve(node.inputs().size());
    std::vector<const Tensor*> inputs;
    for (const Value* value : node.inputs()) {
      const Tensor& tensor = values.at(value);
      inputs.push_back(&tensor);
      if (!(in_tf32 || sums) || tensor.data_type() != DataType::fp32) continue;
      rounded.push_back(tensor.clone());  // a copy would share its memory
      move(rounded.back(), in_tf32 ? 2 * kTf32Unit : shake_.fp32_error, 0, 0);
      inputs.back() = &rounded.back();
    }
    std::vector<Tensor> outputs = run_reference(node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DataType type = outputs[i].data_type();
      if (shaken && skips_rounding(node)) {
        move(outputs[i], relative_error(node.input(0)->data_type(), shake_), 0, 0);
      } else if (shaken && !is_exact(node)) {
        const bool wide = type == DataType::fp32;
        move(outputs[i], in_tf32 && wide ? 2 * kTf32Unit : relative_error(type, shake_), kShareOfLargest,
             absolute_error(type));
        if (node.operator_name().ends_with("_norm_gradient") && i == 0)
          move_cancelled(outputs[i], node, inputs);
      }
      values[node.output(i)] = std::move(outputs[i]);
    }
  }

  // Over one element the gradient of a norm is zero: a difference of equal terms, which kernels round before.
  // Their last operand is the inverse deviation, batch norm's the variance: one for each element then.
  void move_cancelled(Tensor& gradient, const Node& node, const std::vector<const Tensor*>& inputs) {
    const Tensor& scale = *inputs[2];
    const Tensor& last = *inputs[4];
    if (gradient.size() != last.size()) return;
    const bool is_variance = node.operator_name() == "batch_norm_gradient";
    const double relative = relative_error(gradient.data_type(), shake_);
    for (int64_t i = 0; i < gradient.size(); ++i) {
      const double deviation =
          is_variance ? 1 / std::sqrt(last.at(i) + node.attributes().real("epsilon")) : last.at(i);
      const double unit = 2.0 * random_.uniform(drawn_++) - 1;
      const double term = inputs[0]->at(i) * scale.at(i % scale.size()) * deviation;
      if (std::isfinite(term)) gradient.set(i, gradient.at(i) + unit * relative * term);
    }
  }

  // Zeros stay: they are products with zero and what masks leave, in every kernel.
  void move(Tensor& tensor, double relative, double share_of_largest, double absolute) {
    if (relative == 0) return;
    // From -1 to 1. Equal elements round alike, and of many the errors add up then; every other shake does as
    // much. The others find the ties among them.
    const uint64_t own = uint64_t{random_.word(drawn_++)} << 8;
    const auto unit_for = [&](double x) {
      const bool alike = shake_.seed % 2 == 0;
      return 2.0 * random_.uniform(alike ? own ^ std::bit_cast<uint64_t>(x) : drawn_++) - 1;
    };
    if (tensor.data_type() == DataType::fp32) {
      double largest = 0;
      for (const float x : tensor.data<float>())
        largest = std::max(largest, static_cast<double>(std::abs(x)));
      const double all = relative * share_of_largest * largest + absolute;
      for (float& x : tensor.data<float>()) {
        const double unit = unit_for(x);
        if (x != 0 && std::isfinite(x)) x += static_cast<float>(unit * (relative * std::abs(x) + all));
      }
      return;
    }
    const std::vector<double> elements = tensor.to_doubles();
    double largest = 0;
    for (const double x : elements) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < elements.size(); ++i) {
      const double x = elements[i];
      const double unit = unit_for(x);
      if (x == 0 || !std::isfinite(x)) continue;
      const double amplitude = relative * (std::abs(x) + share_of_largest * largest) + absolute;
      tensor.set(static_cast<int64_t>(i), x + unit * amplitude);
    }
  }

  const Shake shake_;
  const Random random_;
  uint64_t drawn_ = 0;
  bool in_body_ = false;
};

}  // namespace

Results interpret(const Graph& graph, const std::map<std::string, Tensor>& values, const Shake& shake) {
  Interpreter::Values all;
  for (const auto& input : graph.inputs()) all[input.get()] = values.at(input->name());
  Interpreter(shake).run(graph, all);
  Results results;
  for (const auto& [name, value] : graph.outputs()) results[name] = all.at(value);
  for (const auto& [state, next] : graph.updates()) results["next " + state->name()] = all.at(next);
  return results;
}

Expectation::Expectation(Results reference, std::function<Results(uint64_t seed)> shaken, double factor)
    : reference_(std::move(reference)), make_(std::move(shaken)), factor_(factor) {}

// Most are within what few shakes say; before one that is not counts as wrong, rare ties get their chance.
std::string Expectation::difference(const Results& actual) {
  constexpr size_t kFew = 5;
  constexpr size_t kMany = 48;
  std::string text;
  for (const size_t count : {kFew, kMany}) {
    shake_until(count);
    text.clear();
    for (const auto& [name, expected] : reference_) text += compare(name, actual.at(name));
    if (text.empty()) break;
  }
  return text;
}

void Expectation::shake_until(size_t count) {
  while (shaken_.size() < count) shaken_.push_back(make_(shaken_.size() + 1));
}

std::string Expectation::compare(const std::string& name, const Tensor& actual) const {
  const Tensor& expected = reference_.at(name);
  if (actual.shape() != expected.shape() || actual.data_type() != expected.data_type()) {
    return fmt::format("{} is {}{}, expected {}{}\n", name, tessera::to_string(actual.data_type()),
                       tessera::to_string(actual.shape()), tessera::to_string(expected.data_type()),
                       tessera::to_string(expected.shape()));
  }
  double largest = 0;
  double spread = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    for (const Results& other : shaken_) {
      const double distance = std::abs(other.at(name).at(i) - expected.at(i));
      if (!std::isfinite(distance)) return "";  // 0/0 in a gradient, or beyond fp16: nothing to compare
      spread = std::max(spread, distance);
    }
  }
  // The floor is for sums that cancel out wholly in the double precision of the reference.
  const bool floating = is_floating(expected.data_type());
  const double allowed =
      floating ? factor_ * spread + 2e-6 * largest + 1e-6 + absolute_error(expected.data_type()) : spread;
  double worst = 0;
  int64_t place = -1;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double distance = std::abs(actual.at(i) - expected.at(i));
    if (distance <= allowed || (distance <= worst && place >= 0)) continue;
    worst = distance;
    place = i;
  }
  if (place < 0) return "";
  return fmt::format("{}, element {} of {}: {}, expected {}, allowed {}, the largest is {}\n", name, place,
                     tessera::to_string(expected.shape()), actual.at(place), expected.at(place), allowed,
                     largest);
}

std::string difference_to_reference(const Results& actual, const Graph& original, const Graph& lowered,
                                    const std::map<std::string, Tensor>& values, Precision precision) {
  // In fp32 a unit is so small that the factor costs nothing.
  constexpr double kFactor = 16;
  // In 16 bits and TF32 units are large, and 16 of them would hide a term that is missing. A shake moves each
  // result twice as far as rounding does at most, and of five the farthest counts.
  constexpr double kCoarseFactor = 3;
  const auto shaken = [&](const Graph& graph, bool tf32, double factor) {
    return Expectation(
        interpret(graph, values),
        [&graph, &values, tf32, factor](uint64_t seed) {
          return interpret(graph, values,
                           {.seed = seed, .tf32 = tf32, .fp32_error = Shake{}.fp32_error * kFactor / factor});
        },
        factor);
  };
  if (precision == Precision::fp32) return shaken(original, false, kFactor).difference(actual);
  if (precision == Precision::tf32) return shaken(original, true, kCoarseFactor).difference(actual);
  // Where 16 bits come in is the passes' choice, so what they made is shaken; and what they made, beside what
  // they were given, is held to the same bound.
  Expectation expectation = shaken(lowered, false, kCoarseFactor);
  std::string text = expectation.difference(actual);
  const std::string passes = expectation.difference(interpret(original, values));
  if (!passes.empty()) text += "what the passes made differs from what they were given: " + passes;
  return text;
}

namespace {

struct Distance {
  double largest = 0;
  double mean_square = 0;

  void widen(const Distance& other) {
    largest = std::max(largest, other.largest);
    mean_square = std::max(mean_square, other.mean_square);
  }
};

Distance distance(const Tensor& a, const Tensor& b) {
  Distance result;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    if (!(difference <= result.largest)) result.largest = difference;
    result.mean_square += difference * difference / static_cast<double>(a.size());
  }
  return result;
}

// What rounding may make of one result: by the distances that it was seen to make.
std::string difference_within(const std::string& name, const Tensor& actual, const Tensor& expected,
                              const Distance& usual, double unit) {
  constexpr double kFactor = 3;
  if (!std::isfinite(usual.mean_square)) return "";
  const Distance size = distance(expected, Tensor(expected.data_type(), expected.shape()));
  const Distance own = distance(actual, expected);
  const double root = std::sqrt(own.mean_square);
  const double allowed = kFactor * std::sqrt(usual.mean_square) + unit * std::sqrt(size.mean_square) + 1e-6;
  const double most = 2 * kFactor * usual.largest + unit * size.largest + 1e-6;
  if (root <= allowed && own.largest <= most) return "";
  return fmt::format("{}{}: off by {} at most, {} in the mean square, where {} and {} are allowed\n", name,
                     tessera::to_string(expected.shape()), own.largest, root, most, allowed);
}

}  // namespace

// Sums over millions of roundings: their mean square is the same for every kernel that rounds as often. Where
// the two that are given happen to agree, one unit of the type is allowed.
std::string difference_to_plain(const Results& actual, const Results& plain, const Results& exact,
                                Precision precision,
                                const std::function<Results(uint64_t seed)>& exact_of_nudged) {
  constexpr uint64_t kNudges = 8;
  const double unit = precision == Precision::bf16   ? relative_error(DataType::bf16, {})
                      : precision == Precision::fp32 ? 1e-5
                                                     : relative_error(DataType::fp16, {});
  std::map<std::string, Distance> usual;
  for (const auto& [name, expected] : exact) usual[name] = distance(plain.at(name), expected);
  std::string text;
  for (uint64_t nudge = 0; nudge <= kNudges; ++nudge) {
    text.clear();
    for (const auto& [name, expected] : exact)
      text += difference_within(name, actual.at(name), expected, usual.at(name), unit);
    if (text.empty() || nudge == kNudges) break;
    for (const auto& [name, other] : exact_of_nudged(nudge + 1))
      usual.at(name).widen(distance(other, exact.at(name)));
  }
  return text;
}

}  // namespace tessera::testing
