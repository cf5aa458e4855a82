#include "kernel_fuzz/problem_maker.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "support/random_tensor.h"

namespace tessera::testing {

int64_t Draw::extent(int64_t most) {
  static const std::vector<int64_t> kPowers{2, 4, 8, 16, 32, 64, 128, 256};
  int64_t result = 1;
  switch (below(8)) {
    case 0:
      break;
    case 1:
    case 2:
      result = pick(kPowers) + between(-1, 1);
      break;
    case 3:
      result = pick(kPowers);
      break;
    case 4:
    case 5:
      result = between(1, 9);
      break;
    default:
      result = between(1, std::max<int64_t>(1, most));
  }
  return std::clamp<int64_t>(result, 1, std::max<int64_t>(1, most));
}

ProblemMaker::ProblemMaker(Draw& draw) : draw_(draw), spoils_(draw.chance(12)) {}

DataType ProblemMaker::type_of(TypeSet types) {
  if (types.contains(DataType::fp32) && draw_.chance(45)) return DataType::fp32;
  std::vector<DataType> list;
  for (const DataType type : kAllDataTypes) {
    if (types.contains(type) && !is_complex(type)) list.push_back(type);
  }
  return draw_.pick(list);
}

DataType ProblemMaker::floating() {
  static const std::vector<DataType> kTypes{DataType::fp32, DataType::fp32, DataType::fp32, DataType::fp32,
                                            DataType::bf16, DataType::bf16, DataType::bf16, DataType::fp16,
                                            DataType::fp16, DataType::fp64};
  return draw_.pick(kTypes);
}

Shape ProblemMaker::shape(int64_t least_rank, int64_t most_rank, int64_t most_elements) {
  Shape result;
  int64_t left = draw_.chance(10) ? most_elements * 16 : most_elements;
  for (int64_t rank = draw_.between(least_rank, most_rank); rank > 0; --rank) {
    result.push_back(draw_.extent(left));
    left = std::max<int64_t>(1, left / result.back());
  }
  if (!result.empty()) {
    const auto some = static_cast<size_t>(draw_.below(static_cast<int64_t>(result.size())));
    std::swap(result[0], result[some]);
    if (draw_.chance(3)) result[some] = 0;
  }
  return result;
}

Value* ProblemMaker::finite_input(DataType type, const Shape& shape, double low, double high,
                                  InputRole role) {
  return input(random_tensor(type, shape, low, high, static_cast<uint64_t>(draw_.below(int64_t{1} << 31))),
               role);
}

Value* ProblemMaker::input(DataType type, const Shape& shape, double low, double high, InputRole role) {
  Value* value = finite_input(type, shape, low, high, role);
  Tensor& tensor = contents_.at(value);
  if (!spoils_ || !is_floating(type) || tensor.size() == 0 || draw_.chance(40)) return value;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> kSpecial{std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 0,
                                     -0.0};
  for (int64_t count = draw_.between(1, 3); count > 0; --count)
    tensor.set(draw_.below(tensor.size()), draw_.pick(kSpecial));
  return value;
}

Value* ProblemMaker::input(const Tensor& contents, InputRole role) {
  Value* value = graph_->add_input(role, fmt::format("{}_{}", to_string(role), graph_->inputs().size()),
                                   {contents.data_type(), to_symbolic(contents.shape())});
  contents_[value] = contents;
  return value;
}

}  // namespace tessera::testing
