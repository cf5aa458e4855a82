#include "support/optimizer_graph.h"

#include <fmt/format.h>

#include "tessera/ops/functions.h"

namespace tessera::testing {
namespace {

struct Parameter {
  Value* value;
  Value* gradient;
  Value* first;
  Value* second;
};

Value* norm(Value* x) {
  return ops::sqrt(ops::reduce_sum(ops::square(x)));
}

Value* decayed(Value* state, Value* next, double decay) {
  return ops::add(ops::multiply(state, decay), ops::multiply(next, 1 - decay));
}

}  // namespace

std::unique_ptr<Graph> optimizer_graph(int parameters) {
  static const SymbolicShape kShapes[] = {{1024, 1024}, {1024}, {4096, 1024}, {4096}, {1024}};
  auto graph = std::make_unique<Graph>("optimizer");
  const auto scalar = [&](InputRole role, const char* name) {
    return graph->add_input(role, name, {DataType::fp32, {}});
  };
  Value* rate = scalar(InputRole::input, "rate");
  Value* step = scalar(InputRole::state, "step");
  std::vector<Parameter> all;
  Value* total = ops::constant_like(rate, 0);
  for (int i = 0; i < parameters; ++i) {
    const TensorType type{DataType::fp32, kShapes[static_cast<size_t>(i) % std::size(kShapes)]};
    const auto add = [&](InputRole role, const char* name) {
      return graph->add_input(role, fmt::format("{}{}", name, i), type);
    };
    all.push_back({add(InputRole::parameter, "w"), add(InputRole::input, "g"), add(InputRole::state, "m"),
                   add(InputRole::state, "v")});
    total = ops::add(total, ops::reduce_sum(ops::square(all.back().gradient)));
  }
  Value* length = ops::sqrt(total);
  Value* sound = ops::less(length, ops::constant_like(length, 1e38));
  Value* clip =
      ops::minimum(ops::divide(ops::constant_like(length, 1), length), ops::constant_like(length, 1));
  const auto correction = [&](double decay) {
    return ops::subtract(1, ops::power(ops::constant_like(step, decay), step));
  };
  const auto update = [&](Value* state, Value* next) {
    graph->add_update(state, ops::select(sound, next, state));
  };
  for (const auto& [w, g, m, v] : all) {
    Value* gradient = ops::multiply(g, clip);
    Value* first = decayed(m, gradient, 0.9);
    Value* second = decayed(v, ops::square(gradient), 0.999);
    Value* deviation = ops::add(ops::sqrt(ops::divide(second, correction(0.999))), 1e-6);
    Value* direction = ops::divide(ops::divide(first, correction(0.9)), deviation);
    direction = ops::add(direction, ops::multiply(w, 0.01));
    Value* w_norm = norm(w);
    Value* direction_norm = norm(direction);
    Value* zero = ops::constant_like(w_norm, 0);
    Value* both = ops::logical_and(ops::greater(w_norm, zero), ops::greater(direction_norm, zero));
    Value* trust = ops::select(both, ops::divide(w_norm, direction_norm), ops::constant_like(w_norm, 1));
    update(w, ops::subtract(w, ops::multiply(ops::multiply(direction, trust), rate)));
    update(m, first);
    update(v, second);
  }
  update(step, ops::add(step, 1.0));
  graph->add_output("norm", length);
  return graph;
}

}  // namespace tessera::testing
