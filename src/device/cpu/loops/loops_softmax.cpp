// softmax and log_softmax along any axis.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/graph/operator.h"

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/loops/row_loops.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

template <typename T>
void softmax_row(const RowLoops<T>& loops, const T* x, T* y, int64_t n, bool logarithm) {
  const T largest = loops.maximum(x, n);
  if (logarithm) {
    const double sum = loops.exponentials(x, largest, nullptr, n);
    // The maximum first: beside a large one the logarithm is less than its last digit.
    loops.subtract(x, largest, static_cast<T>(std::log(sum)), y, n);
  } else {
    const double sum = loops.exponentials(x, largest, y, n);
    loops.affine(y, static_cast<T>(1 / sum), T(0), y, n);
  }
}

// One row, strided or of another type than T, by way of `row`.
template <typename T>
class RowReader {
 public:
  RowReader(DataType type, const AxisView& view)
      : type_(type),
        view_(view),
        bytes_(static_cast<int64_t>(size_of(type))),
        strided_(view.inner > 1),
        raw_(static_cast<size_t>(strided_ ? view.extent * bytes_ : 0)) {}

  void load(const char* start, T* row) {
    const void* source = start;
    if (strided_) {
      for (int64_t i = 0; i < view_.extent; ++i) {
        std::copy_n(start + i * view_.inner * bytes_, bytes_, raw_.data() + i * bytes_);
      }
      source = raw_.data();
    }
    find_load(type_)(row, &source, view_.extent);
  }
  void store(const T* row, char* start) {
    const void* source = row;
    find_store(type_)(strided_ ? raw_.data() : start, &source, view_.extent);
    if (!strided_) return;
    for (int64_t i = 0; i < view_.extent; ++i) {
      std::copy_n(raw_.data() + i * bytes_, bytes_, start + i * view_.inner * bytes_);
    }
  }

 private:
  DataType type_;
  AxisView view_;
  int64_t bytes_;
  bool strided_;
  std::vector<char> raw_;
};

template <typename T>
void run_rows(DataType type, const AxisView& view, bool logarithm, const char* x, char* y) {
  const RowLoops<T>& loops = row_loops(T());
  const bool direct = view.inner == 1 && DataTypeOf<T>::value == type;
  const auto bytes = static_cast<int64_t>(size_of(type));
  const int64_t rows = view.outer * view.inner;
  for_each_part(
      std::min(part_count(4 * rows * view.extent), rows), rows, [&](int64_t, int64_t begin, int64_t end) {
        RowReader<T> reader(type, view);
        std::vector<T> row(static_cast<size_t>(direct ? 0 : view.extent));
        for (int64_t k = begin; k < end; ++k) {
          const int64_t start = (k / view.inner * view.extent * view.inner + k % view.inner) * bytes;
          if (direct) {
            softmax_row(loops, reinterpret_cast<const T*>(x + start), reinterpret_cast<T*>(y + start),
                        view.extent, logarithm);
          } else {
            reader.load(x + start, row.data());
            softmax_row(loops, row.data(), row.data(), view.extent, logarithm);
            reader.store(row.data(), y + start);
          }
        }
      });
}

LoopKernel make(const Node& node, bool logarithm) {
  const AxisView view = view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  const DataType type = node.input(0)->data_type();
  return {.run = [=](const KernelArguments& arguments) {
    if (view.outer * view.extent * view.inner == 0) return;
    const auto* x = static_cast<const char*>(arguments.inputs[0]);
    auto* y = static_cast<char*>(arguments.outputs[0]);
    if (type == DataType::fp64) {
      run_rows<double>(type, view, logarithm, x, y);
    } else {
      run_rows<float>(type, view, logarithm, x, y);
    }
  }};
}

const LoopRegistration kSoftmax("softmax", [](const Node& node) { return make(node, false); });
const LoopRegistration kLogSoftmax("log_softmax", [](const Node& node) { return make(node, true); });

}  // namespace
}  // namespace tessera::cpu
