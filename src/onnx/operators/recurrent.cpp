// RNN, GRU, LSTM: a step of the graph for each step of time.
#include <algorithm>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

using Activation = std::function<Value*(Value*)>;

// Names with the numbers that the lists give to those that take some, in the order of the names.
std::vector<Activation> activations_of(LowerCall& call, const std::vector<std::string>& otherwise,
                                       size_t count) {
  std::vector<std::string> names = call.texts("activations");
  while (names.size() < count) names.insert(names.end(), otherwise.begin(), otherwise.end());
  const std::vector<double> alphas = call.reals("activation_alpha");
  const std::vector<double> betas = call.reals("activation_beta");
  size_t next_alpha = 0;
  size_t next_beta = 0;
  std::vector<Activation> result;
  for (std::string name : names) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto alpha = [&](double usual) {
      return next_alpha < alphas.size() ? alphas[next_alpha++] : usual;
    };
    const auto beta = [&](double usual) { return next_beta < betas.size() ? betas[next_beta++] : usual; };
    if (name == "tanh") {
      result.emplace_back([](Value* x) { return ops::tanh(x); });
    } else if (name == "sigmoid") {
      result.emplace_back([](Value* x) { return ops::sigmoid(x); });
    } else if (name == "relu") {
      result.emplace_back([](Value* x) { return ops::relu(x); });
    } else if (name == "softplus") {
      result.emplace_back([](Value* x) { return ops::softplus(x); });
    } else if (name == "softsign") {
      result.emplace_back([](Value* x) { return ops::divide(x, ops::add(ops::absolute(x), 1)); });
    } else if (name == "leakyrelu") {
      result.emplace_back([a = alpha(0.01)](Value* x) { return ops::leaky_relu(x, a); });
    } else if (name == "elu") {
      result.emplace_back([a = alpha(1)](Value* x) { return ops::elu(x, a); });
    } else if (name == "affine") {
      result.emplace_back([a = alpha(1), b = beta(0)](Value* x) { return ops::add(ops::multiply(x, a), b); });
    } else if (name == "scaledtanh") {
      result.emplace_back(
          [a = alpha(1), b = beta(1)](Value* x) { return ops::multiply(ops::tanh(ops::multiply(x, b)), a); });
    } else if (name == "hardsigmoid") {
      result.emplace_back([a = alpha(0.2), b = beta(0.5)](Value* x) {
        return ops::clip(ops::add(ops::multiply(x, a), b), 0, 1);
      });
    } else if (name == "thresholdedrelu") {
      result.emplace_back([a = alpha(1)](Value* x) {
        return ops::select(ops::greater(x, ops::constant_like(x, a)), x, ops::constant_like(x, 0));
      });
    } else {
      fail(ErrorCode::unsupported, "{}: the activation '{}' is not supported", call.instruction().place(),
           name);
    }
  }
  return result;
}

// One direction of a layer.
struct Direction {
  Value* projected;       // [time, batch, gates * hidden]: what the inputs add to all gates, with their bias
  Value* recurrent;       // [gates * hidden, hidden]
  Value* recurrent_bias;  // [gates * hidden], or null
  Value* peephole;        // [3 * hidden], or null
  std::vector<Activation> activations;
  int64_t hidden;
  double clip;
};

Value* gate(Value* gates, int64_t i, int64_t hidden) {
  return slice_axis(gates, gates->type().rank() - 1, i * hidden, (i + 1) * hidden);
}

struct State {
  Value* hidden;
  Value* cell = nullptr;
};

class Cell {
 public:
  Cell(LowerCall& call, const Direction& direction) : call_(call), d_(direction) {}
  State operator()(Value* x, const State& state) const {
    const std::string& name = call_.instruction().operator_name;
    return name == "LSTM" ? lstm(x, state) : name == "GRU" ? gru(x, state) : rnn(x, state);
  }

 private:
  Value* clipped(Value* x) const { return d_.clip > 0 ? ops::clip(x, -d_.clip, d_.clip) : x; }
  Value* from_hidden(Value* hidden, Value* weight, Value* bias) const {
    Value* y = ops::matmul(hidden, weight, {.transpose_b = true});
    return bias == nullptr ? y : ops::add(y, bias);
  }
  Value* activated(size_t i, Value* x) const { return d_.activations[i](clipped(x)); }

  State rnn(Value* x, const State& state) const {
    return {activated(0, ops::add(x, from_hidden(state.hidden, d_.recurrent, d_.recurrent_bias)))};
  }

  // Cho et al. 2014; the gates are update, reset, hidden.
  State gru(Value* x, const State& state) const {
    const int64_t h = d_.hidden;
    const auto bias = [&](int64_t begin, int64_t end) {
      return d_.recurrent_bias == nullptr ? nullptr : slice_axis(d_.recurrent_bias, 0, begin * h, end * h);
    };
    Value* both = from_hidden(state.hidden, slice_axis(d_.recurrent, 0, 0, 2 * h), bias(0, 2));
    Value* update = activated(0, ops::add(gate(x, 0, h), gate(both, 0, h)));
    Value* reset = activated(0, ops::add(gate(x, 1, h), gate(both, 1, h)));
    Value* weight = slice_axis(d_.recurrent, 0, 2 * h, 3 * h);
    Value* candidate = call_.integer("linear_before_reset", 0) != 0
                           ? ops::multiply(reset, from_hidden(state.hidden, weight, bias(2, 3)))
                           : from_hidden(ops::multiply(reset, state.hidden), weight, bias(2, 3));
    candidate = activated(1, ops::add(gate(x, 2, h), candidate));
    return {
        ops::add(ops::multiply(ops::subtract(1, update), candidate), ops::multiply(update, state.hidden))};
  }

  // Hochreiter and Schmidhuber 1997, with peepholes of Gers and Schmidhuber 2000; the gates are input,
  // output, forget, cell.
  State lstm(Value* x, const State& state) const {
    const int64_t h = d_.hidden;
    Value* all = ops::add(x, from_hidden(state.hidden, d_.recurrent, d_.recurrent_bias));
    const auto seen = [&](Value* sum, int64_t place, Value* cell) {
      return d_.peephole == nullptr ? sum : ops::add(sum, ops::multiply(gate(d_.peephole, place, h), cell));
    };
    Value* input = activated(0, seen(gate(all, 0, h), 0, state.cell));
    Value* forget = call_.integer("input_forget", 0) != 0
                        ? ops::subtract(1, input)
                        : activated(0, seen(gate(all, 2, h), 2, state.cell));
    Value* candidate = activated(1, gate(all, 3, h));
    Value* cell = ops::add(ops::multiply(forget, state.cell), ops::multiply(input, candidate));
    Value* output = activated(0, seen(gate(all, 1, h), 1, cell));
    return {ops::multiply(output, d_.activations[2](cell)), cell};
  }

  LowerCall& call_;
  const Direction& d_;
};

struct Layer {
  int64_t gates;
  std::vector<std::string> activations;  // of one direction
};

Layer layer_of(const std::string& name) {
  if (name == "LSTM") return {4, {"Sigmoid", "Tanh", "Tanh"}};
  if (name == "GRU") return {3, {"Sigmoid", "Tanh"}};
  return {1, {"Tanh"}};
}

Value* part(LowerCall& call, size_t operand, int64_t direction) {
  return call.has(operand) ? squeeze(slice_axis(call.operand(operand), 0, direction, direction + 1), {0})
                           : nullptr;
}

struct Run {
  std::vector<Value*> outputs;  // of each step, [batch, hidden]
  State last;
};

// Rows that have ended keep their state and give zeros.
Run run_direction(LowerCall& call, const Direction& direction, State state, bool backward) {
  const Cell cell(call, direction);
  const int64_t steps = extent(direction.projected, 0);
  Value* lengths = call.has(4) ? unsqueeze(ops::cast(call.operand(4), DataType::int64), {1}) : nullptr;
  Run run;
  run.outputs.resize(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = backward ? steps - 1 - i : i;
    State next = cell(squeeze(slice_axis(direction.projected, 0, t, t + 1), {0}), state);
    Value* output = next.hidden;
    if (lengths != nullptr) {
      Value* goes_on = ops::greater(lengths, number(call.graph(), DataType::int64, static_cast<double>(t)));
      output = ops::select(goes_on, output, ops::constant_like(output, 0));
      next.hidden = ops::select(goes_on, next.hidden, state.hidden);
      if (next.cell != nullptr) next.cell = ops::select(goes_on, next.cell, state.cell);
    }
    run.outputs[static_cast<size_t>(t)] = output;
    state = next;
  }
  run.last = state;
  return run;
}

void lower_recurrent(LowerCall& call) {
  const std::string& name = call.instruction().operator_name;
  const Layer layer = layer_of(name);
  const bool is_lstm = name == "LSTM";
  const bool batch_first = call.integer("layout", 0) != 0;
  const std::string way = call.text("direction", "forward");
  Value* x = call.operand(0);
  call.require(x->type().rank() == 3, "it takes [time, batch, inputs]");
  if (batch_first) x = transpose(x, {1, 0, 2});
  const Shape shape = shape_of(x);
  const int64_t directions = extent(call.operand(1), 0);
  const int64_t hidden = extent(call.operand(2), 2);
  call.require(directions == (way == "bidirectional" ? 2 : 1), "its weights are not for its direction");
  const std::vector<Activation> activations =
      activations_of(call, layer.activations, layer.activations.size() * static_cast<size_t>(directions));
  const auto initial = [&](size_t operand, int64_t direction) {
    if (!call.has(operand)) return broadcast(number(call.graph(), x->data_type(), 0), {shape[1], hidden});
    Value* given = call.operand(operand);
    if (batch_first) given = transpose(given, {1, 0, 2});
    return squeeze(slice_axis(given, 0, direction, direction + 1), {0});
  };
  std::vector<Value*> outputs;
  std::vector<Value*> hiddens;
  std::vector<Value*> cells;
  for (int64_t direction = 0; direction < directions; ++direction) {
    Value* projected = ops::matmul(x, part(call, 1, direction), {.transpose_b = true});
    Value* bias = part(call, 3, direction);
    const int64_t width = layer.gates * hidden;
    if (bias != nullptr) projected = ops::add(projected, slice_axis(bias, 0, 0, width));
    const auto first = static_cast<std::ptrdiff_t>(direction) * std::ssize(layer.activations);
    const Direction d{
        projected,
        part(call, 2, direction),
        bias == nullptr ? nullptr : slice_axis(bias, 0, width, 2 * width),
        is_lstm ? part(call, 7, direction) : nullptr,
        {activations.begin() + first, activations.begin() + first + std::ssize(layer.activations)},
        hidden,
        call.real("clip", 0)};
    State state{initial(5, direction), is_lstm ? initial(6, direction) : nullptr};
    const Run run = run_direction(call, d, state, way == "reverse" || direction == 1);
    std::vector<Value*> steps;
    for (Value* output : run.outputs) steps.push_back(unsqueeze(output, {0, 1}));  // [1, 1, batch, hidden]
    outputs.push_back(steps.size() == 1 ? steps[0] : ops::concat(steps, 0));
    hiddens.push_back(unsqueeze(run.last.hidden, {0}));
    if (is_lstm) cells.push_back(unsqueeze(run.last.cell, {0}));
  }
  const auto joined = [](const std::vector<Value*>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : ops::concat(parts, axis);
  };
  Value* y = joined(outputs, 1);
  const auto state_out = [&](Value* state) { return batch_first ? transpose(state, {1, 0, 2}) : state; };
  call.result(0, batch_first ? transpose(y, {2, 0, 1, 3}) : y);
  call.result(1, state_out(joined(hiddens, 0)));
  if (is_lstm) call.result(2, state_out(joined(cells, 0)));
}

const RuleRegistrations kRegistration{
    {.name = "RNN", .lower = lower_recurrent},
    {.name = "GRU", .lower = lower_recurrent},
    {.name = "LSTM", .lower = lower_recurrent},
};

}  // namespace
}  // namespace tessera::onnx
