#include "infer/batch_rows.h"

#include "tessera/base/elements.h"

namespace tessera::infer {
namespace {

// Elements of less than a byte need not begin with one.
void copy_rows(const Tensor& source, int64_t from, Tensor& target, int64_t to, int64_t count) {
  const int64_t elements = source.size() / source.shape().front();
  copy_run(source.data_type(), source.raw(), from * elements, target.raw(), to * elements, count * elements);
}

}  // namespace

Tensor take_rows(const Tensor& tensor, int64_t first, int64_t count, int64_t rows) {
  if (first == 0 && count == rows && count == tensor.shape().front()) return tensor;
  Shape shape = tensor.shape();
  shape.front() = rows;
  Tensor result(tensor.data_type(), std::move(shape));
  copy_rows(tensor, first, result, 0, count);
  return result;
}

void put_rows(const Tensor& source, Tensor& target, int64_t first, int64_t count) {
  copy_rows(source, 0, target, first, count);
}

}  // namespace tessera::infer
