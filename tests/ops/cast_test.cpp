// Casts between all element types, against the values that tests/golden/casts.py wrote to casts.json.
#include <cmath>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/elements.h"
#include "tessera/graph/operator.h"

#include "ops/examples.h"
#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

using Json = nlohmann::json;

Tensor tensor_of(DataType type, int64_t count, const std::string& digits) {
  Tensor tensor(type, {count});
  EXPECT_EQ(tensor.bytes() * 2, digits.size());
  auto* bytes = static_cast<uint8_t*>(tensor.raw());
  for (size_t i = 0; i < tensor.bytes(); ++i)
    bytes[i] = static_cast<uint8_t>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  return tensor;
}

// The same bits; NaN has many.
void expect_same(const Tensor& actual, const Tensor& expected, const Tensor& x) {
  for (int64_t i = 0; i < actual.size(); ++i) {
    Tensor a(actual.data_type(), {1});
    Tensor b(actual.data_type(), {1});
    copy_run(actual.data_type(), actual.raw(), i, a.raw(), 0, 1);
    copy_run(actual.data_type(), expected.raw(), i, b.raw(), 0, 1);
    const bool same = a.identical(b) || (std::isnan(a.at(0)) && std::isnan(b.at(0)));
    EXPECT_TRUE(same) << "of " << x.at(i) << " it makes " << a.at(0) << ", not " << b.at(0);
  }
}

TEST(Cast, AgreesWithNumpyAndOnnx) {
  std::ifstream file(TESSERA_TEST_FOLDER "/casts.json");
  ASSERT_TRUE(file.is_open());
  std::set<std::string> types;
  for (const Json& own : Json::parse(file)) {
    SCOPED_TRACE(own.at("from").get<std::string>() + " to " + own.at("to").get<std::string>() +
                 (own.at("saturate").get<bool>() ? "" : ", not saturated"));
    types.insert(own.at("to").get<std::string>());
    const int64_t count = own.at("count");
    const DataType to = parse_data_type(own.at("to").get<std::string>());
    const Tensor x = tensor_of(parse_data_type(own.at("from").get<std::string>()), count, own.at("x"));
    const Tensor y =
        run_operator("cast", {x}, {{"type", to}, {"saturate", own.at("saturate").get<bool>()}})[0];
    expect_same(y, tensor_of(to, count, own.at("y")), x);
    EXPECT_TRUE(y.identical(x.cast(to, own.at("saturate"))));
  }
  for (const DataType type : kAllDataTypes)
    EXPECT_EQ(types.contains(std::string(to_string(type))), kRealTypes.contains(type)) << to_string(type);
}

TEST(Cast, RefusesComplexNumbers) {
  const Tensor x(DataType::complex64, {2});
  EXPECT_ERROR(run_operator("cast", {x}, {{"type", DataType::fp32}}), ErrorCode::invalid_graph, "complex64");
  const Tensor real(DataType::fp32, {2});
  EXPECT_ERROR(run_operator("cast", {real}, {{"type", DataType::complex64}}), ErrorCode::invalid_graph,
               "complex64");
}

// Arithmetic takes none of the types that are stored only, and says what to do.
TEST(Types, WhatIsOnlyStoredIsNotComputed) {
  constexpr TypeSet kComputed = kNumericTypes | TypeSet{DataType::int16, DataType::uint16, DataType::uint32};
  for (const DataType type : kAllDataTypes) {
    const Tensor x(type, {2});
    if (kComputed.contains(type)) {
      EXPECT_NO_THROW(run_operator("add", {x, x}, {})) << to_string(type);
    } else {
      EXPECT_ERROR(run_operator("add", {x, x}, {}), ErrorCode::invalid_graph, std::string(to_string(type)));
    }
  }
  EXPECT_ERROR(run_operator("add", {Tensor(DataType::int4, {2}), Tensor(DataType::int4, {2})}, {}),
               ErrorCode::invalid_graph, "cast it first");
}

Tensor numbered(DataType type, const Shape& shape) {
  Tensor tensor(type, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i % 5) - 2);
  if (is_complex(type)) {
    Tensor parts = tensor.parts();
    for (int64_t i = 0; i < tensor.size(); ++i) parts.set(2 * i + 1, static_cast<double>(i));
  }
  return tensor;
}

Tensor element_of(const Tensor& tensor, int64_t index) {
  Tensor result(tensor.data_type(), {});
  copy_run(tensor.data_type(), tensor.raw(), index, result.raw(), 0, 1);
  return result;
}

// Packed elements, too: rows of three of them begin within a byte.
TEST(Types, EveryTypeIsMoved) {
  for (const DataType type : kAllDataTypes) {
    SCOPED_TRACE(to_string(type));
    const Tensor x = numbered(type, {5, 3});
    const Tensor transposed =
        run_operator("transpose", {x}, {{"permutation", std::vector<int64_t>{1, 0}}})[0];
    const Tensor joined = run_operator("concat", {x, x}, {{"axis", 0}})[0];
    const Tensor indices = Tensor::from<int32_t>({2}, {4, 1});
    const Tensor rows = run_operator("gather", {x, indices}, {})[0];
    const Tensor changed = run_operator("set_rows", {x, indices, rows}, {})[0];
    const Tensor chosen =
        run_operator("select", {Tensor::full(DataType::boolean, {5, 3}, 1), x, element_of(x, 0)}, {})[0];
    const Tensor one = run_operator("slice", {x},
                                    {{"starts", std::vector<int64_t>{1, 0}},
                                     {"limits", std::vector<int64_t>{2, 3}},
                                     {"strides", std::vector<int64_t>{1, 1}}})[0];
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t column = 0; column < 3; ++column) {
        const Tensor own = element_of(x, row * 3 + column);
        EXPECT_TRUE(element_of(transposed, column * 5 + row).identical(own));
        EXPECT_TRUE(element_of(joined, (row + 5) * 3 + column).identical(own));
        EXPECT_TRUE(element_of(changed, row * 3 + column).identical(own));
        if (row == 4) {
          EXPECT_TRUE(element_of(rows, column).identical(own));
        }
        if (row == 1) {
          EXPECT_TRUE(element_of(one, column).identical(own));
        }
      }
    }
    EXPECT_TRUE(chosen.identical(x));
    EXPECT_TRUE(run_operator("reshape", {x}, {{"shape", to_symbolic({15})}})[0].identical(x.reshape({15})));
  }
}

}  // namespace
}  // namespace tessera::testing
