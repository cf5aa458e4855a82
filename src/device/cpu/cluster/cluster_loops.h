// The pre-compiled loops of the cluster engine: one per primitive operator and kind of register, for tiles
// that lie in the first-level cache. Chosen by the instruction set of the machine at run time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.h"
#include "tessera/base/random.h"

namespace tessera::cpu {

// How a register (a tile in the first-level cache) holds elements. fp16, bf16 and booleans (0 and 1) are
// computed in f32, as 8-bit floats are, small integers in i32, and uint32 in i64.
enum class Lane : uint8_t { f32, f64, i32, i64 };

// Of the types that have one.
Lane lane_of(DataType type);
// Not those of elements narrower than a byte, complex ones, and uint64.
bool has_lane(DataType type);
int64_t lane_bytes(Lane lane);
// The data type whose memory is a register as it stands.
DataType storage_of(Lane lane);

// out[i] = f(in[0][i], in[1][i], ...) for i in [0, n); an operand marked as scalar is one element.
// `out` may be one of the operands when their elements have the same size.
using Loop = void (*)(void* out, const void* const* in, int64_t n);

// The loop of a primitive for operands in that kind of register (of a select: the two values; its condition
// is f32). Comparisons and is_finite write f32. Bit k of `scalars` says that operand k is one element; null
// where there is no loop.
Loop find_loop(std::string_view operator_name, Lane lane, unsigned scalars);
// The operators that have loops, sorted.
std::vector<std::string> loop_names();

// From memory of a data type to its register, and back with rounding.
Loop find_load(DataType type);
Loop find_store(DataType type);
// Between registers, as `cast` does it: truncating and saturating towards integers. Without saturation an
// integer keeps its lowest bits.
Loop find_conversion(Lane from, Lane to, bool saturate = true);
// Rounds a register to what the data type can hold; null where every value is held. Casts saturate unless
// they say otherwise, arithmetic wraps.
Loop find_rounding(DataType type, bool saturate);

// out[i] = random number of index first + i, uniform in [0, 1) with that many bits, bit-equal to the
// reference.
void random_uniform(uint64_t seed, uint64_t stream, int bits, uint64_t first, float* out, int64_t n);

}  // namespace tessera::cpu
