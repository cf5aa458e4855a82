#include "parquet/arrow_cells.h"

#include <arrow/array.h>
#include <arrow/type_traits.h>
#include <arrow/util/float16.h>
#include <arrow/util/formatting.h>
#include <fmt/format.h>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

using Type = arrow::Type;

template <typename Visit>
void visit_texts(const arrow::Array& array, const ParquetFile::CellVisitor& visitor, const Visit& visit) {
  for (int64_t row = 0; row < array.length(); ++row) {
    if (array.IsNull(row)) {
      visitor({});
    } else {
      visit(row);
    }
  }
}

template <typename ArrayType>
void visit_numbers(const arrow::Array& array, const ParquetFile::CellVisitor& visitor) {
  const auto& numbers = static_cast<const ArrayType&>(array);
  visit_texts(array, visitor, [&](int64_t row) {
    fmt::memory_buffer text;
    // A sum with 0 is an int where a byte would be printed as a character.
    fmt::format_to(std::back_inserter(text), "{}", numbers.Value(row) + 0);
    visitor({text.data(), text.size()});
  });
}

void visit_halves(const arrow::Array& array, const ParquetFile::CellVisitor& visitor) {
  const auto& halves = static_cast<const arrow::HalfFloatArray&>(array);
  visit_texts(array, visitor, [&](int64_t row) {
    visitor(fmt::format("{}", arrow::util::Float16::FromBits(halves.Value(row)).ToFloat()));
  });
}

template <typename ArrayType>
void visit_strings(const arrow::Array& array, const ParquetFile::CellVisitor& visitor) {
  const auto& strings = static_cast<const ArrayType&>(array);
  visit_texts(array, visitor, [&](int64_t row) { visitor(strings.GetView(row)); });
}

template <typename ArrayType>
void visit_decimals(const arrow::Array& array, const ParquetFile::CellVisitor& visitor) {
  const auto& decimals = static_cast<const ArrayType&>(array);
  visit_texts(array, visitor, [&](int64_t row) { visitor(decimals.FormatValue(row)); });
}

template <typename ArrowType>
void visit_moments(const arrow::Array& array, const ParquetFile::CellVisitor& visitor) {
  const auto& moments = static_cast<const typename arrow::TypeTraits<ArrowType>::ArrayType&>(array);
  arrow::internal::StringFormatter<ArrowType> format(array.type().get());
  visit_texts(array, visitor, [&](int64_t row) { format(moments.Value(row), visitor); });
}

// A value once, and its place in each row.
void visit_dictionary(const arrow::Array& array, const std::string& name,
                      const ParquetFile::CellVisitor& visitor) {
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  std::vector<std::string> values;
  visit_cells(*coded.dictionary(), name, [&](std::string_view value) { values.emplace_back(value); });
  visit_texts(array, visitor, [&](int64_t row) {
    const int64_t place = coded.GetValueIndex(row);
    require(place >= 0 && place < std::ssize(values), ErrorCode::invalid_file,
            "{}: a cell is entry {} of a dictionary of {}", name, place, values.size());
    visitor(values[static_cast<size_t>(place)]);
  });
}

}  // namespace

bool is_text(const arrow::DataType& type) {
  if (type.id() == Type::DICTIONARY)
    return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING || type.id() == Type::STRING_VIEW;
}

bool has_cells(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::DICTIONARY:
      return has_cells(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case Type::NA:
    case Type::BOOL:
    case Type::DATE32:
    case Type::TIMESTAMP:
      return true;
    default:
      return is_text(type) || arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
             arrow::is_decimal(type.id());
  }
}

void visit_cells(const arrow::Array& array, const std::string& name,
                 const ParquetFile::CellVisitor& visitor) {
  switch (array.type_id()) {
    case Type::NA:
      return visit_texts(array, visitor, [](int64_t) {});
    case Type::BOOL:
      return visit_numbers<arrow::BooleanArray>(array, visitor);
    case Type::INT8:
      return visit_numbers<arrow::Int8Array>(array, visitor);
    case Type::UINT8:
      return visit_numbers<arrow::UInt8Array>(array, visitor);
    case Type::INT16:
      return visit_numbers<arrow::Int16Array>(array, visitor);
    case Type::UINT16:
      return visit_numbers<arrow::UInt16Array>(array, visitor);
    case Type::INT32:
      return visit_numbers<arrow::Int32Array>(array, visitor);
    case Type::UINT32:
      return visit_numbers<arrow::UInt32Array>(array, visitor);
    case Type::INT64:
      return visit_numbers<arrow::Int64Array>(array, visitor);
    case Type::UINT64:
      return visit_numbers<arrow::UInt64Array>(array, visitor);
    case Type::HALF_FLOAT:
      return visit_halves(array, visitor);
    case Type::FLOAT:
      return visit_numbers<arrow::FloatArray>(array, visitor);
    case Type::DOUBLE:
      return visit_numbers<arrow::DoubleArray>(array, visitor);
    case Type::STRING:
      return visit_strings<arrow::StringArray>(array, visitor);
    case Type::LARGE_STRING:
      return visit_strings<arrow::LargeStringArray>(array, visitor);
    case Type::STRING_VIEW:
      return visit_strings<arrow::StringViewArray>(array, visitor);
    case Type::DECIMAL32:
      return visit_decimals<arrow::Decimal32Array>(array, visitor);
    case Type::DECIMAL64:
      return visit_decimals<arrow::Decimal64Array>(array, visitor);
    case Type::DECIMAL128:
      return visit_decimals<arrow::Decimal128Array>(array, visitor);
    case Type::DECIMAL256:
      return visit_decimals<arrow::Decimal256Array>(array, visitor);
    case Type::DATE32:
      return visit_moments<arrow::Date32Type>(array, visitor);
    case Type::TIMESTAMP:
      return visit_moments<arrow::TimestampType>(array, visitor);
    case Type::DICTIONARY:
      return visit_dictionary(array, name, visitor);
    default:
      fail(ErrorCode::internal, "{}: {} has no cells", name, array.type()->ToString());
  }
}

}  // namespace tessera::data
