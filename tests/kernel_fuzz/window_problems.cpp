// Pooling with its gradients, and reductions.
#include <algorithm>

#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

struct RandomPool {
  Shape x, y;
  ops::PoolOptions options;
};

RandomPool random_pool(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  RandomPool own;
  own.x = {draw.between(1, 4)};
  const int64_t axes = draw.pick(std::vector<int64_t>{1, 2, 2, 2, 3});
  const bool same = draw.chance(60);
  const int64_t first_window = draw.between(1, 4);
  const int64_t first_stride = draw.between(1, 3);
  const int64_t most = axes == 3 ? 7 : axes == 2 ? 18 : 70;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t window = same ? first_window : draw.between(1, 4);
    const int64_t stride = same ? first_stride : draw.between(1, 4);
    const int64_t low = draw.below(window);
    const int64_t high = draw.chance(60) ? low : draw.below(window);
    const int64_t extent = std::max({draw.between(1, most), window - low - high, int64_t{1}});
    own.x.push_back(extent);
    own.y.push_back((extent + low + high - window) / stride + 1);
    own.options.window.push_back(window);
    own.options.strides.push_back(stride);
    own.options.padding_low.push_back(low);
    own.options.padding_high.push_back(high);
  }
  own.options.count_padding = draw.chance(50);
  if (draw.chance(3)) own.x[0] = 0;
  own.x.push_back(draw.extent(70));
  own.y.insert(own.y.begin(), own.x[0]);
  own.y.push_back(own.x.back());
  return own;
}

void make_max_pool(ProblemMaker& maker) {
  const RandomPool own = random_pool(maker);
  // Whole numbers for ties.
  const double range = maker.draw().chance(50) ? 2 : 40;
  ops::max_pool(maker.input(maker.type_of(kNumericTypes), own.x, -range, range), own.options);
}

void make_average_pool(ProblemMaker& maker) {
  const RandomPool own = random_pool(maker);
  ops::average_pool(maker.input(maker.floating(), own.x), own.options);
}

void make_max_pool_gradient(ProblemMaker& maker) {
  const RandomPool own = random_pool(maker);
  const DataType type = maker.floating();
  Value* x = maker.finite_input(type, own.x, -1, 1);
  const Node& forward = *ops::max_pool(x, own.options)->producer();
  const std::vector<const Tensor*> contents{&maker.contents(x)};
  Value* position = maker.input(run_reference(forward, contents)[1]);
  ops::max_pool_gradient(maker.input(type, own.y), position, to_symbolic(own.x), own.options);
}

void make_average_pool_gradient(ProblemMaker& maker) {
  const RandomPool own = random_pool(maker);
  ops::average_pool_gradient(maker.input(maker.floating(), own.y), to_symbolic(own.x), own.options);
}

// x, of a type that the operator takes, and which axes.
void make_reduction(ProblemMaker& maker, const std::string& name, double low, double high) {
  Draw& draw = maker.draw();
  const OperatorSchema& schema = OperatorRegistry::instance().get(name);
  const Shape shape = maker.shape(0, 5);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
    if (draw.chance(50)) axes.push_back(draw.chance(80) ? axis : axis - static_cast<int64_t>(shape.size()));
  }
  ops::apply(name, {maker.input(maker.type_of(schema.inputs[0].types), shape, low, high)},
             {{"axes", axes}, {"keep_dimensions", draw.chance(50)}});
}

void make_sum(ProblemMaker& maker) {
  make_reduction(maker, "reduce_sum", -2, 2);
}
void make_mean(ProblemMaker& maker) {
  make_reduction(maker, "reduce_mean", -2, 2);
}
void make_max(ProblemMaker& maker) {
  make_reduction(maker, "reduce_max", -9, 9);
}
void make_min(ProblemMaker& maker) {
  make_reduction(maker, "reduce_min", -9, 9);
}
void make_product(ProblemMaker& maker) {
  make_reduction(maker, "reduce_product", 0.9, 1.1);
}

void make_argmax(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  Shape shape = maker.shape(1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = draw.chance(50) ? -1 : draw.between(-rank, rank - 1);
  int64_t& searched = shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  searched = std::max<int64_t>(searched, 1);
  ops::argmax(maker.finite_input(maker.type_of(kNumericTypes), shape, -9, 9), axis, draw.chance(50));
}

void make_cumulative_sum(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const Shape shape = maker.shape(1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  ops::cumulative_sum(
      maker.input(maker.type_of(kNumericTypes), shape, -9, 9),
      {.axis = draw.between(-rank, rank - 1), .exclusive = draw.chance(50), .reverse = draw.chance(50)});
}

}  // namespace

NodeMakers pooling_makers() {
  return {{"max_pool", make_max_pool},
          {"average_pool", make_average_pool},
          {"max_pool_gradient", make_max_pool_gradient},
          {"average_pool_gradient", make_average_pool_gradient}};
}

NodeMakers reduction_makers() {
  return {{"reduce_sum", make_sum},
          {"reduce_mean", make_mean},
          {"reduce_max", make_max},
          {"reduce_min", make_min},
          {"argmax", make_argmax},
          {"reduce_product", make_product},
          {"cumulative_sum", make_cumulative_sum}};
}

}  // namespace tessera::testing
