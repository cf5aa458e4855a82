#include "onnx/stack.h"

#include "tessera/base/elements.h"
#include "tessera/base/error.h"

namespace tessera::onnx {
namespace {

int64_t count_between(const Shape& shape, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= shape[i];
  return count;
}

}  // namespace

Tensor concatenate(const std::vector<Tensor>& parts, int64_t axis) {
  require(!parts.empty(), ErrorCode::invalid_argument, "there is nothing to put together");
  const auto at = static_cast<size_t>(axis);
  Shape shape = parts[0].shape();
  require(at < shape.size(), ErrorCode::invalid_argument, "axis {} of {} axes", axis, shape.size());
  shape[at] = 0;
  for (const Tensor& part : parts) {
    Shape others = part.shape();
    if (others.size() == shape.size()) others[at] = shape[at];
    require(others == shape && part.data_type() == parts[0].data_type(), ErrorCode::invalid_argument,
            "tensors of {}{} and {}{} do not go together", to_string(parts[0].data_type()),
            to_string(parts[0].shape()), to_string(part.data_type()), to_string(part.shape()));
    shape[at] += part.shape()[at];
  }
  Tensor result(parts[0].data_type(), shape);
  const int64_t outer = count_between(shape, 0, at);
  const int64_t inner = count_between(shape, at + 1, shape.size());
  int64_t place = 0;
  for (int64_t block = 0; block < outer; ++block) {
    for (const Tensor& part : parts) {
      const int64_t run = part.shape()[at] * inner;
      copy_run(result.data_type(), part.raw(), block * run, result.raw(), place, run);
      place += run;
    }
  }
  return result;
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis) {
  std::vector<Tensor> grown;
  for (const Tensor& part : parts) {
    Shape shape = part.shape();
    require(axis >= 0 && axis <= std::ssize(shape), ErrorCode::invalid_argument, "axis {} of {} axes", axis,
            shape.size() + 1);
    shape.insert(shape.begin() + axis, 1);
    grown.push_back(part.reshape(shape));
  }
  return concatenate(grown, axis);
}

Tensor part_of(const Tensor& tensor, int64_t axis, int64_t start, int64_t limit) {
  const auto at = static_cast<size_t>(axis);
  Shape shape = tensor.shape();
  require(at < shape.size() && start >= 0 && start <= limit && limit <= shape[at],
          ErrorCode::invalid_argument, "elements {} to {} of axis {} of a tensor {}", start, limit, axis,
          to_string(shape));
  const int64_t extent = shape[at];
  shape[at] = limit - start;
  Tensor result(tensor.data_type(), shape);
  const int64_t inner = count_between(shape, at + 1, shape.size());
  const int64_t run = (limit - start) * inner;
  for (int64_t block = 0; block < count_between(shape, 0, at); ++block)
    copy_run(result.data_type(), tensor.raw(), (block * extent + start) * inner, result.raw(), block * run,
             run);
  return result;
}

Tensor element_of(const Tensor& tensor, int64_t axis, int64_t index) {
  Shape shape = tensor.shape();
  Tensor part = part_of(tensor, axis, index, index + 1);
  shape.erase(shape.begin() + axis);
  return part.reshape(shape);
}

}  // namespace tessera::onnx
