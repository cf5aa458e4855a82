// Single elements in memory, and the conversion of many, for every element type.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/data_type.h"

namespace tessera {

// Elements from the first on, as doubles; 64-bit integers beyond 2^53 are rounded. Throws
// Error(invalid_argument) of complex types.
void load_elements(DataType type, const void* memory, int64_t first, std::span<double> values);

// A floating type rounds to nearest even, those of 16 bits and less by way of fp32; an integer type
// truncates towards zero and saturates, with NaN as 0; bool is true of all but 0; a complex number gets no
// imaginary part. What an 8-bit floating type cannot hold becomes its highest number when saturating, else
// infinity, or NaN where it has no infinity.
void store_elements(DataType type, void* memory, int64_t first, std::span<const double> values,
                    bool saturate);

// Converts elements as store_elements() does, and integers to integers without a way through double: exactly
// where they fit; else saturating, or keeping the lowest bits. Throws Error(invalid_argument) when one of
// the types is complex and the other is not the same.
void cast_elements(DataType from, const void* source, DataType to, void* target, int64_t count,
                   bool saturate);

// Copies elements that lie together; places and count are in elements.
void copy_run(DataType type, const void* source, int64_t from, void* target, int64_t to, int64_t count);

}  // namespace tessera
