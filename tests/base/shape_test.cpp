#include "tessera/base/shape.h"

#include <gtest/gtest.h>

#include "tessera/base/tensor.h"

#include "support/expect_error.h"

namespace tessera {
namespace {

constexpr int64_t kLarge = int64_t{1} << 31;

TEST(Shape, CountsElementsOrRefuses) {
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(element_count(Shape{2, 3, 5}), 30);
  EXPECT_EQ(element_count(Shape{kLarge, kLarge / 2}), int64_t{1} << 61);
  EXPECT_ERROR(element_count(Shape{kLarge, kLarge, 2}), ErrorCode::invalid_argument,
               "[2147483648, 2147483648, 2]", "64 bits");
  EXPECT_EQ(element_count(Shape{kLarge, kLarge, kLarge, 0}), 0);
}

TEST(Shape, CountsBytesOrRefuses) {
  EXPECT_EQ(tensor_bytes({2, 3}, 4), 24);
  EXPECT_EQ(tensor_bytes({2, 0, 3}, 4), 0);
  EXPECT_EQ(tensor_bytes({kMaximumTensorBytes / 8}, 8), kMaximumTensorBytes);
  EXPECT_ERROR(tensor_bytes({kMaximumTensorBytes / 8 + 1}, 8), ErrorCode::out_of_memory, "128.0 TiB");
  EXPECT_ERROR(tensor_bytes({kLarge, kLarge, kLarge}, 1), ErrorCode::out_of_memory, "2147483648");
  EXPECT_ERROR(tensor_bytes({2, -1}, 4), ErrorCode::invalid_argument, "[2, -1]", "negative");
  // Nothing is stored, but its strides would overflow.
  EXPECT_ERROR(tensor_bytes({0, kLarge, kLarge}, 1), ErrorCode::out_of_memory, "[0, 2147483648, 2147483648]");
  EXPECT_ERROR(Tensor(DataType::fp32, {0, kLarge, kLarge}), ErrorCode::out_of_memory, "2147483648");
}

TEST(Shape, StridesFitOrAreRefused) {
  EXPECT_EQ(row_major_strides({kLarge, 3, 5}), (std::vector<int64_t>{15, 5, 1}));
  EXPECT_ERROR(row_major_strides({0, kLarge, kLarge, kLarge}), ErrorCode::invalid_argument, "64 bits");
}

}  // namespace
}  // namespace tessera
