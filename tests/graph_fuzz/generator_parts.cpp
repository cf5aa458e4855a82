// Values and variables that are cut into parts which begin where kernels want memory to begin, and joined
// from them.
#include "graph_fuzz/generator.h"

namespace tessera::testing {
namespace {

constexpr int64_t kWidth = 64;  // of a row: 256 bytes in fp32

}  // namespace

Value* Generator::rows_to_part() {
  const int64_t rows = 2 + below(4);
  switch (below(4)) {
    case 0: {
      Value* x = any();
      const int64_t count = x->type().element_count();
      if (count > rows * kWidth) return nullptr;
      return ops::reshape(ops::pad(ops::reshape(x, {count}), {0}, {rows * kWidth - count}), {rows, kWidth});
    }
    case 1: {
      Value* state = add_input(InputRole::state, {rows, kWidth}, -1, 1);
      switch (below(3)) {
        case 0:  // the rows move up
          update(state,
                 ops::concat(
                     {ops::slice(state, {1, 0}, {rows, kWidth}), ops::slice(state, {0, 0}, {1, kWidth})}, 0));
          break;
        case 1:
          update(state, ops::multiply(state, ops::slice(state, {rows - 1, 0}, {rows, kWidth})));
          break;
        default:
          update(state, ops::tanh(state));
          break;
      }
      return state;
    }
    case 2:
      return parameter({rows, kWidth});
    default:
      input({rows, kWidth});
      return pool_.back();
  }
}

Value* Generator::step(Value* x) {
  switch (below(5)) {
    case 0:
      return ops::tanh(x);
    case 1:
      return ops::multiply(ops::relu(x), 0.5);
    case 2:
      return ops::matmul(x, parameter({kWidth, kWidth}, 0.2));
    case 3:
      return ops::reshape(ops::multiply(x, 0.75), {x->type().element_count() / kWidth, kWidth});
    default:
      return x;
  }
}

Value* Generator::parts() {
  Value* x = rows_to_part();
  if (x == nullptr) return nullptr;
  const int64_t rows = shape_of(x)[0];
  switch (below(4)) {
    case 0: {  // each goes its own way, and some come together
      const int64_t cut = 1 + below(rows - 1);
      std::vector<Value*> parts = ops::split(x, {cut, rows - cut}, 0);
      for (Value*& part : parts) part = step(part);
      if (chance(30)) std::swap(parts[0], parts[1]);
      if (chance(30)) extra_.push_back(parts[0]);
      return ops::concat(parts, 0);
    }
    case 1: {  // what each layer makes is joined to what it read
      for (int layer = 0; layer < 3; ++layer) x = ops::concat({x, step(x)}, 0);
      return x;
    }
    case 2: {  // the same with all that came before in a list
      std::vector<Value*> list{step(x)};
      for (int layer = 0; layer < 3; ++layer)
        list.push_back(step(layer == 0 ? list[0] : ops::concat(list, 0)));
      return ops::concat(list, 0);
    }
    default: {  // parts of parts
      Value* part = ops::slice(x, {below(rows), 0}, {rows, kWidth});
      part = ops::slice(part, {0, 0}, {1 + below(shape_of(part)[0]), kWidth});
      return chance(50) ? step(part) : part;
    }
  }
}

}  // namespace tessera::testing
