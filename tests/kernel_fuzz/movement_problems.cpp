// What moves elements, looks them up, or makes them of nothing.
#include <algorithm>

#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

Value* any_input(ProblemMaker& maker, const Shape& shape) {
  return maker.input(maker.type_of(kAnyTypes), shape, -9, 9);
}

void make_reshape(ProblemMaker& maker) {
  const Shape shape = maker.shape(0, 4);
  Shape flat{element_count(shape)};
  if (maker.draw().chance(50)) flat.insert(flat.begin(), 1);
  ops::reshape(any_input(maker, shape), to_symbolic(flat));
}

void make_transpose(ProblemMaker& maker) {
  const Shape shape = maker.shape(1, 5);
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    permutation.insert(permutation.begin() + maker.draw().below(i + 1), i);
  ops::transpose(any_input(maker, shape), permutation);
}

void make_broadcast(ProblemMaker& maker) {
  const Shape whole = maker.shape(0, 4);
  Shape shape(whole.begin() + maker.draw().below(static_cast<int64_t>(whole.size()) + 1), whole.end());
  for (int64_t& extent : shape) {
    if (maker.draw().chance(40)) extent = 1;
  }
  ops::broadcast_to(any_input(maker, shape), to_symbolic(whole));
}

void make_concat(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const DataType type = maker.type_of(kAnyTypes);
  Shape shape = maker.shape(1, 4, 1000);
  const auto axis = static_cast<size_t>(draw.below(static_cast<int64_t>(shape.size())));
  std::vector<Value*> inputs;
  for (int64_t count = draw.between(1, 5); count > 0; --count) {
    inputs.push_back(maker.input(type, shape, -9, 9));
    shape[axis] = draw.chance(5) ? 0 : draw.extent(20);
  }
  ops::concat(inputs, static_cast<int64_t>(axis));
}

void make_split(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  Shape shape = maker.shape(1, 4, 2000);
  const auto axis = static_cast<size_t>(draw.below(static_cast<int64_t>(shape.size())));
  std::vector<int64_t> sizes;
  shape[axis] = 0;
  for (int64_t count = draw.between(1, 5); count > 0; --count) {
    sizes.push_back(draw.chance(5) ? 0 : draw.extent(20));
    shape[axis] += sizes.back();
  }
  ops::split(any_input(maker, shape), sizes, static_cast<int64_t>(axis));
}

void make_slice(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const Shape shape = maker.shape(1, 4);
  std::vector<int64_t> starts;
  std::vector<int64_t> limits;
  std::vector<int64_t> strides;
  for (const int64_t extent : shape) {
    const int64_t start = draw.chance(40) ? 0 : draw.below(extent + 1);
    starts.push_back(draw.chance(20) && start < extent ? start - extent : start);
    limits.push_back(draw.chance(40) ? ops::kWholeAxis : draw.between(start, extent));
    strides.push_back(draw.chance(60) ? 1 : draw.between(1, 4));
  }
  ops::slice(any_input(maker, shape), starts, limits, strides);
}

void make_pad(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const Shape shape = maker.shape(1, 4, 1000);
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  std::vector<int64_t> interior;
  for (const int64_t extent : shape) {
    // Negative padding cuts off.
    low.push_back(draw.chance(15) ? -draw.below(extent / 2 + 1) : draw.below(4));
    high.push_back(draw.chance(15) ? -draw.below(extent / 2 + 1) : draw.below(4));
    interior.push_back(draw.chance(70) ? 0 : draw.below(3));
  }
  ops::pad(any_input(maker, shape), low, high, draw.chance(50) ? 0 : draw.uniform(0, 3), interior);
}

void make_gather(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  Shape shape = maker.shape(1, 3, 2000);
  const auto axis = static_cast<size_t>(draw.below(static_cast<int64_t>(shape.size())));
  shape[axis] = std::max<int64_t>(shape[axis], 1);
  Value* table = any_input(maker, shape);
  Value* indices = maker.finite_input(maker.type_of(kIndexTypes), maker.shape(0, 2, 50), 0,
                                      static_cast<double>(shape[axis] - 1));
  ops::gather(table, indices, static_cast<int64_t>(axis));
}

void make_scatter_add(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const int64_t extent = draw.extent(60);
  const Shape places = maker.shape(1, 1, draw.chance(30) ? 3000 : 100);
  Shape updates = maker.shape(0, 2, 60);
  updates.insert(updates.begin(), places[0]);
  Value* indices = maker.finite_input(maker.type_of(kIndexTypes), places, 0, static_cast<double>(extent - 1));
  ops::scatter_add(indices, maker.input(maker.type_of(kFloatingTypes | kIndexTypes), updates, -2, 2), extent);
}

void make_combine_rows(ProblemMaker& maker) {
  const Shape places = maker.shape(1, 1, 700);
  Shape rows = maker.shape(0, 2, 60);
  rows.insert(rows.begin(), places[0]);
  const auto last = static_cast<double>(maker.draw().below(60));
  Value* indices = maker.finite_input(maker.type_of(kIndexTypes), places, 0, last);
  ops::combine_rows(indices, maker.input(maker.floating(), rows, -2, 2));
}

void make_set_rows(ProblemMaker& maker) {
  Shape shape = maker.shape(1, 3, 2000);
  Value* table = any_input(maker, shape);
  const Shape places = maker.shape(1, 1, 100);
  Value* indices =
      maker.finite_input(maker.type_of(kIndexTypes), places, -1, static_cast<double>(shape[0] - 1));
  shape[0] = places[0];
  ops::set_rows(table, indices, maker.input(table->data_type(), shape));
}

void make_one_hot(ProblemMaker& maker) {
  const int64_t depth = maker.draw().extent(60);
  Value* indices = maker.finite_input(maker.type_of(kIndexTypes), maker.shape(0, 3, 60), 0,
                                      static_cast<double>(depth - 1));
  ops::one_hot(indices, depth, maker.type_of(kNumericTypes));
}

void make_top_k(ProblemMaker& maker) {
  Shape shape = maker.shape(1, 3);
  shape.back() = std::max<int64_t>(shape.back(), 1);
  const double range = maker.draw().chance(50) ? 3 : 100;  // with ties among whole numbers
  ops::top_k(maker.finite_input(maker.type_of(kNumericTypes), shape, -range, range),
             maker.draw().between(1, shape.back()));
}

Value* counter(ProblemMaker& maker) {
  return maker.finite_input(DataType::int64, {2}, 0, 1000);
}

void make_random_uniform(ProblemMaker& maker) {
  ops::random_uniform(counter(maker), to_symbolic(maker.shape(0, 4)), maker.draw().below(1000),
                      maker.floating());
}

void make_random_normal(ProblemMaker& maker) {
  ops::random_normal(counter(maker), to_symbolic(maker.shape(0, 4)), maker.draw().below(1000),
                     maker.floating());
}

void make_dropout(ProblemMaker& maker) {
  Value* x = maker.input(maker.floating(), maker.shape(0, 4), -2, 2);
  ops::dropout(x, counter(maker), maker.draw().uniform(0, 0.95), maker.draw().below(1000));
}

void make_iota(ProblemMaker& maker) {
  const Shape shape = maker.shape(1, 4, 100);
  ops::iota(maker.graph(), to_symbolic(shape), maker.draw().below(static_cast<int64_t>(shape.size())),
            maker.type_of({DataType::fp32, DataType::fp64, DataType::int32, DataType::int64}));
}

void make_count_elements(ProblemMaker& maker) {
  maker.graph().add_node("count_elements", {}, {{"shape", to_symbolic(maker.shape(0, 3))}});
}

void make_constant(ProblemMaker& maker) {
  ops::constant(maker.graph(), Tensor::full(maker.type_of(kAnyTypes), maker.shape(0, 2), 1));
}

}  // namespace

NodeMakers movement_makers() {
  return {{"reshape", make_reshape}, {"transpose", make_transpose}, {"broadcast_to", make_broadcast},
          {"concat", make_concat},   {"split", make_split},         {"slice", make_slice},
          {"pad", make_pad}};
}

NodeMakers indexing_makers() {
  return {{"gather", make_gather},     {"scatter_add", make_scatter_add}, {"combine_rows", make_combine_rows},
          {"set_rows", make_set_rows}, {"one_hot", make_one_hot},         {"top_k", make_top_k}};
}

NodeMakers source_makers() {
  return {{"random_uniform", make_random_uniform},
          {"random_normal", make_random_normal},
          {"dropout", make_dropout},
          {"iota", make_iota},
          {"count_elements", make_count_elements},
          {"constant", make_constant}};
}

}  // namespace tessera::testing
