// What decides extents by contents: NonZero, Compress, Unique, NonMaxSuppression.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tessera/base/elements.h"

#include "onnx/lowering.h"
#include "onnx/stack.h"

namespace tessera::onnx {
namespace {

void evaluate_non_zero(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const auto rank = std::ssize(x.shape());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.at(i) != 0) places.push_back(i);
  }
  Tensor result(DataType::int64, {rank, std::ssize(places)});
  auto out = result.data<int64_t>();
  const std::vector<int64_t> strides = row_major_strides(x.shape());
  for (size_t axis = 0; axis < x.shape().size(); ++axis) {
    for (size_t i = 0; i < places.size(); ++i)
      out[axis * places.size() + i] = places[i] / strides[axis] % x.shape()[axis];
  }
  call.result(0, result);
}

// The elements of an axis at these places.
Tensor taken(const Tensor& x, int64_t axis, const std::vector<int64_t>& places) {
  if (places.empty()) return part_of(x, axis, 0, 0);
  std::vector<Tensor> parts;
  for (const int64_t place : places) parts.push_back(element_of(x, axis, place));
  return stack(parts, axis);
}

void evaluate_compress(HostCall& call) {
  Tensor x = call.tensor(0);
  const Tensor& condition = call.tensor(1);
  int64_t axis = 0;
  if (call.has_argument("axis")) {
    axis = axis_of(call, call.integer("axis"), std::ssize(x.shape()));
  } else {
    x = x.reshape({x.size()});
  }
  std::vector<int64_t> places;
  for (int64_t i = 0; i < std::min(condition.size(), x.shape()[static_cast<size_t>(axis)]); ++i) {
    if (condition.at(i) != 0) places.push_back(i);
  }
  call.result(0, taken(x, axis, places));
}

// Rows along an axis as keys that compare as their elements do; NaN comes last.
struct RowOrder {
  bool operator()(const std::vector<double>& a, const std::vector<double>& b) const {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(),
        [](double left, double right) { return std::isnan(right) ? !std::isnan(left) : left < right; });
  }
};

struct Seen {
  int64_t first = 0;
  int64_t count = 0;
};

void evaluate_unique(HostCall& call) {
  Tensor x = call.tensor(0);
  int64_t axis = 0;
  const bool flat = !call.has_argument("axis");
  if (flat) {
    x = x.reshape({x.size()});
  } else {
    axis = axis_of(call, call.integer("axis"), std::ssize(x.shape()));
  }
  const int64_t count = x.shape()[static_cast<size_t>(axis)];
  std::map<std::vector<double>, Seen, RowOrder> seen;
  std::vector<const std::pair<const std::vector<double>, Seen>*> of_row;
  for (int64_t i = 0; i < count; ++i) {
    const auto [entry, is_new] = seen.try_emplace(element_of(x, axis, i).to_doubles(), Seen{i, 0});
    ++entry->second.count;
    of_row.push_back(&*entry);
  }
  std::vector<const std::pair<const std::vector<double>, Seen>*> order;
  for (const auto& entry : seen) order.push_back(&entry);
  if (call.integer("sorted", 1) == 0)
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->second.first < b->second.first; });
  std::vector<int64_t> firsts;
  std::vector<int64_t> counts;
  std::map<const void*, int64_t> number;
  for (const auto* entry : order) {
    number[entry] = std::ssize(firsts);
    firsts.push_back(entry->second.first);
    counts.push_back(entry->second.count);
  }
  std::vector<int64_t> inverse;
  for (const auto* entry : of_row) inverse.push_back(number[entry]);
  call.result(0, taken(x, axis, firsts));
  call.result(1, Tensor::from<int64_t>({std::ssize(firsts)}, firsts));
  call.result(2, Tensor::from<int64_t>({std::ssize(inverse)}, inverse));
  call.result(3, Tensor::from<int64_t>({std::ssize(counts)}, counts));
}

struct Box {
  double top, left, bottom, right;
  double area() const { return std::max(0.0, bottom - top) * std::max(0.0, right - left); }
};

Box box_at(const Tensor& boxes, int64_t row, bool centered) {
  const double a = boxes.at(4 * row);
  const double b = boxes.at(4 * row + 1);
  const double c = boxes.at(4 * row + 2);
  const double d = boxes.at(4 * row + 3);
  if (centered) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};  // x, y, width, height
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

double overlap(const Box& a, const Box& b) {
  const Box common{std::max(a.top, b.top), std::max(a.left, b.left), std::min(a.bottom, b.bottom),
                   std::min(a.right, b.right)};
  const double both = common.area();
  const double either = a.area() + b.area() - both;
  return either <= 0 ? 0 : both / either;
}

void evaluate_non_max_suppression(HostCall& call) {
  const Tensor& boxes = call.tensor(0);   // [batches, boxes, 4]
  const Tensor& scores = call.tensor(1);  // [batches, classes, boxes]
  call.require(boxes.shape().size() == 3 && boxes.shape()[2] == 4 && scores.shape().size() == 3 &&
                   scores.shape()[0] == boxes.shape()[0] && scores.shape()[2] == boxes.shape()[1],
               "it takes boxes [batches, boxes, 4] and scores [batches, classes, boxes]");
  const int64_t most = call.has(2) ? static_cast<int64_t>(number_in(call, 2)) : 0;
  const double most_overlap = call.has(3) ? number_in(call, 3) : 0;
  const double least_score = call.has(4) ? number_in(call, 4) : -std::numeric_limits<double>::infinity();
  const bool centered = call.integer("center_point_box", 0) != 0;
  const int64_t count = boxes.shape()[1];
  std::vector<int64_t> selected;
  for (int64_t batch = 0; batch < scores.shape()[0]; ++batch) {
    for (int64_t kind = 0; kind < scores.shape()[1]; ++kind) {
      const auto score = [&](int64_t i) { return scores.at((batch * scores.shape()[1] + kind) * count + i); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i) {
        if (score(i) > least_score) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
      std::vector<Box> kept;
      for (const int64_t i : order) {
        if (std::ssize(kept) >= most) break;
        const Box box = box_at(boxes, batch * count + i, centered);
        const auto covers = [&](const Box& other) { return overlap(box, other) > most_overlap; };
        if (std::any_of(kept.begin(), kept.end(), covers)) continue;
        kept.push_back(box);
        selected.insert(selected.end(), {batch, kind, i});
      }
    }
  }
  call.result(0, Tensor::from<int64_t>({std::ssize(selected) / 3, 3}, selected));
}

const RuleRegistrations kRegistration{
    {.name = "NonZero", .evaluate = evaluate_non_zero},
    {.name = "Compress", .evaluate = evaluate_compress},
    {.name = "Unique", .evaluate = evaluate_unique},
    {.name = "NonMaxSuppression", .evaluate = evaluate_non_max_suppression},
};

}  // namespace
}  // namespace tessera::onnx
