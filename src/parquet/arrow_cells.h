// Cells of Arrow's arrays as texts.
#pragma once

#include <string>

#include <arrow/array/array_base.h>
#include <arrow/type.h>

#include "tessera/data/parquet_plugin.h"

namespace tessera::data {

bool has_cells(const arrow::DataType& type);
bool is_text(const arrow::DataType& type);

// Visits the cells as ParquetFile::visit() says; the array's type has cells. Throws Error(invalid_file), with
// the file's name, where places in a dictionary are outside of it.
void visit_cells(const arrow::Array& array, const std::string& name, const ParquetFile::CellVisitor& visitor);

}  // namespace tessera::data
