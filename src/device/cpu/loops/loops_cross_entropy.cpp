// cross_entropy and its gradient, row by row, whose numbers are fp32, or fp64 as the logits. A label that is
// neither a class nor ignored gives NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/loops/row_loops.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

struct Problem {
  int64_t rows;
  int64_t columns;
  int64_t classes;  // the first columns
  double smoothing;
  int64_t ignored;
  DataType type;
  DataType label_type;

  explicit Problem(const Node& node)
      : rows(node.input(0)->type().static_shape()[0]),
        columns(node.input(0)->type().static_shape()[1]),
        classes(ops::class_count(node.attributes(), columns)),
        smoothing(node.attributes().real("smoothing")),
        ignored(node.attributes().integer("ignored_label")),
        type(node.input(0)->data_type()),
        label_type(node.input(1)->data_type()) {}

  int64_t label(const void* labels, int64_t row) const {
    return label_type == DataType::int64 ? static_cast<const int64_t*>(labels)[row]
                                         : static_cast<const int32_t*>(labels)[row];
  }
};

// The row of logits as T; `row` is room for a conversion.
template <typename T>
const T* read_row(const Problem& problem, const void* logits, int64_t index, T* row) {
  const auto* start = static_cast<const char*>(logits) +
                      index * problem.columns * static_cast<int64_t>(size_of(problem.type));
  if (DataTypeOf<T>::value == problem.type) return reinterpret_cast<const T*>(start);
  const void* source = start;
  find_load(problem.type)(row, &source, problem.classes);
  return row;
}

template <typename T>
void write(const Problem& problem, const T* values, int64_t n, void* out, int64_t index) {
  const void* source = values;
  find_store(problem.type)(static_cast<char*>(out) + index * static_cast<int64_t>(size_of(problem.type)),
                           &source, n);
}

template <typename T>
void run_loss(const Problem& problem, const KernelArguments& arguments) {
  const RowLoops<T>& loops = row_loops(T());
  const int64_t classes = problem.classes;
  for_each_part(part_count(4 * problem.rows * classes), problem.rows,
                [&](int64_t, int64_t begin, int64_t end) {
                  std::vector<T> scratch(static_cast<size_t>(classes));
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t label = problem.label(arguments.inputs[1], row);
                    T loss = std::numeric_limits<T>::quiet_NaN();
                    if (label == problem.ignored) {
                      loss = 0;
                    } else if (label >= 0 && label < classes) {
                      const T* x = read_row(problem, arguments.inputs[0], row, scratch.data());
                      const T largest = loops.maximum(x, classes);
                      const double log_sum = std::log(loops.exponentials(x, largest, nullptr, classes));
                      // Of each logit the largest first, as the reference does: sums of large ones round.
                      const auto below_largest = [&](T logit) {
                        return static_cast<double>(logit) - static_cast<double>(largest);
                      };
                      double result = (1 - problem.smoothing) * (log_sum - below_largest(x[label]));
                      if (problem.smoothing > 0) {
                        double sum = 0;
                        for (int64_t i = 0; i < classes; ++i) sum += below_largest(x[i]);
                        result += problem.smoothing * (log_sum - sum / static_cast<double>(classes));
                      }
                      loss = static_cast<T>(result);
                    }
                    static_cast<T*>(arguments.outputs[0])[row] = loss;
                  }
                });
}

// dx = dy * (softmax(x) - target)
template <typename T>
void run_gradient(const Problem& problem, const KernelArguments& arguments) {
  const RowLoops<T>& loops = row_loops(T());
  const int64_t classes = problem.classes;
  const int64_t columns = problem.columns;
  const bool direct = DataTypeOf<T>::value == problem.type;
  for_each_part(
      part_count(4 * problem.rows * classes), problem.rows, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<T> scratch(static_cast<size_t>(columns));
        for (int64_t row = begin; row < end; ++row) {
          T* result = direct ? static_cast<T*>(arguments.outputs[0]) + row * columns : scratch.data();
          std::fill(result + classes, result + columns, T(0));
          const int64_t label = problem.label(arguments.inputs[1], row);
          if (label == problem.ignored) {
            std::fill_n(result, classes, T(0));
          } else if (label < 0 || label >= classes) {
            std::fill_n(result, classes, std::numeric_limits<T>::quiet_NaN());
          } else {
            const T* x = read_row(problem, arguments.inputs[0], row, scratch.data());
            const double sum = loops.exponentials(x, loops.maximum(x, classes), result, classes);
            const double share = problem.smoothing / static_cast<double>(classes);
            const auto dy = static_cast<double>(static_cast<const T*>(arguments.inputs[2])[row]);
            loops.affine(result, static_cast<T>(dy / sum), static_cast<T>(-dy * share), result, classes);
            result[label] -= static_cast<T>(dy * (1 - problem.smoothing));
          }
          if (!direct) write(problem, result, columns, arguments.outputs[0], row * columns);
        }
      });
}

template <typename Run>
LoopKernel make(const Node& node, Run run) {
  const Problem problem(node);
  return {.run = [problem, run](const KernelArguments& arguments) {
    if (problem.rows * problem.columns == 0) return;
    if (problem.type == DataType::fp64) {
      run.template operator()<double>(problem, arguments);
    } else {
      run.template operator()<float>(problem, arguments);
    }
  }};
}

const LoopRegistration kLoss("cross_entropy", [](const Node& node) {
  return make(node, []<typename T>(const Problem& problem, const KernelArguments& arguments) {
    run_loss<T>(problem, arguments);
  });
});
const LoopRegistration kGradient("cross_entropy_gradient", [](const Node& node) {
  return make(node, []<typename T>(const Problem& problem, const KernelArguments& arguments) {
    run_gradient<T>(problem, arguments);
  });
});

}  // namespace
}  // namespace tessera::cpu
