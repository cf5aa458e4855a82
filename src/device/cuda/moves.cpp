// Moves between strided views: transpose, concat, split, slice, pad.
#include "device/cuda/moves.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/strided_move.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWarp = 32;

// Axes of extent 1 gone, neighbors merged where both views walk through them with one stride.
backend::StridedMove merged(const backend::StridedMove& move) {
  backend::StridedMove result{{}, {move.from.offset, {}}, {move.to.offset, {}}, move.input, move.output};
  for (size_t axis = 0; axis < move.shape.size(); ++axis) {
    const int64_t extent = move.shape[axis];
    const int64_t from = move.from.strides[axis];
    const int64_t to = move.to.strides[axis];
    if (extent == 1) continue;
    if (!result.shape.empty() && result.from.strides.back() == from * extent &&
        result.to.strides.back() == to * extent) {
      result.shape.back() *= extent;
      result.from.strides.back() = from;
      result.to.strides.back() = to;
    } else {
      result.shape.push_back(extent);
      result.from.strides.push_back(from);
      result.to.strides.push_back(to);
    }
  }
  if (result.shape.empty()) {
    result.shape = {1};
    result.from.strides = {1};
    result.to.strides = {1};
  }
  return result;
}

// The move by whole accesses, of so many elements each, where both views have them side by side; unchanged
// where not.
bool widen(backend::StridedMove& move, int64_t elements) {
  const auto is_whole = [&](const backend::StridedView& view) {
    return view.strides.back() == 1 && view.offset % elements == 0 &&
           std::all_of(view.strides.begin(), view.strides.end() - 1,
                       [&](int64_t stride) { return stride % elements == 0; });
  };
  if (move.shape.back() % elements != 0 || !is_whole(move.from) || !is_whole(move.to)) return false;
  move.shape.back() /= elements;
  for (backend::StridedView* view : {&move.from, &move.to}) {
    view->offset /= elements;
    for (size_t axis = 0; axis + 1 < view->strides.size(); ++axis) view->strides[axis] /= elements;
  }
  return true;
}

// Widened as far as it goes; what the widest access moves, in bytes.
int64_t widened_bytes(backend::StridedMove& move, DataType type) {
  const auto bytes = static_cast<int64_t>(size_of(type));
  for (int64_t wide = kWidestAccess; wide > bytes; wide /= 2) {
    if (widen(move, wide / bytes)) return wide;
  }
  return bytes;
}

std::string index_of(const backend::StridedMove& move) {
  const auto farthest = [&](const backend::StridedView& view) {
    int64_t place = std::abs(view.offset);
    for (size_t axis = 0; axis < move.shape.size(); ++axis)
      place += std::abs(view.strides[axis]) * move.shape[axis];
    return place;
  };
  return index_up_to(std::max({element_count(move.shape), farthest(move.from), farthest(move.to)}));
}

// `members`: what the kernel reads of the move beside its views.
std::string move_struct(const backend::StridedMove& move, const std::string& name,
                        const std::string& members = "") {
  return fmt::format(
      "struct {} {{\n  using index = {};\n  static constexpr int rank = {};\n{}"
      "  index extents[{}] = {{{}}}, from[{}] = {{{}}}, to[{}] = {{{}}};\n"
      "  index from_offset = {}, to_offset = {};\n}};\n",
      name, index_of(move), move.shape.size(), members, move.shape.size(), fmt::join(move.shape, ", "),
      move.shape.size(), fmt::join(move.from.strides, ", "), move.shape.size(),
      fmt::join(move.to.strides, ", "), move.from.offset, move.to.offset);
}

// Where the padding value goes, in one launch.
void add_padding(GeneratedProgram& program, const Node& node, const std::string& type, const GpuTraits& gpu) {
  const Tensor value = Tensor::scalar(node.input(0)->data_type(), node.attributes().real("value"));
  uint64_t bits = 0;
  std::memcpy(&bits, value.raw(), value.bytes());
  std::string body;
  int64_t most = 0;
  size_t number = 0;
  for (const backend::StridedMove& own : backend::padding_moves(node)) {
    const backend::StridedMove move = merged(own);
    const std::string name = fmt::format("Padding{}", number++);
    const int64_t count = element_count(move.shape);
    program.source += move_struct(move, name);
    body +=
        fmt::format("  strided_fill({}{{}}, y, static_cast<{}>({:#x}ULL), {});\n", name, type, bits, count);
    most = std::max(most, count);
  }
  if (most == 0) return;
  program.source += entry_text("pad", kThreads, type + "* y", body);
  program.launches.push_back({.entry = "pad",
                              .blocks = blocks_for(most, kThreads, gpu),
                              .threads = kThreads,
                              .arguments = {{Argument::Kind::output, 0}}});
}

// Whether warps walk along rows: an element for each thread and division would take longer than memory does.
// Wide accesses need fewer threads, and short rows leave most of a warp without work.
bool walks_rows(const backend::StridedMove& move, int64_t access_bytes) {
  constexpr int64_t kShortest = 512;
  return access_bytes < kWidestAccess && move.from.strides.back() == 1 && move.to.strides.back() == 1 &&
         move.shape.back() * access_bytes >= kShortest;
}

void add_move(GeneratedProgram& program, const backend::StridedMove& own, size_t number, DataType type,
              const GpuTraits& gpu) {
  backend::StridedMove move = merged(own);
  const int64_t access_bytes = widened_bytes(move, type);
  int64_t count = element_count(move.shape);
  int64_t threads = count;
  std::string function = "strided_move";
  std::string members;
  if (count > 0 && walks_rows(move, access_bytes)) {
    const int64_t length = move.shape.back();
    const int64_t parts = quotient_rounded_up(length * access_bytes, int64_t{kRowMoveBytes});
    function = "move_rows";
    members = fmt::format("  static constexpr index row_length = {}, row_parts = {};\n", length, parts);
    count /= length;
    threads = count * parts * kWarp;
  }
  const std::string structure = fmt::format("Move{}", number);
  const std::string entry = fmt::format("move{}", number);
  program.source += move_struct(move, structure, members);
  program.source +=
      entry_text(entry, kThreads, fmt::format("const {0}* x, {0}* y", unit_of_bytes(access_bytes)),
                 fmt::format("  constexpr {} m;\n  {}(m, x, y, {});\n", structure, function, count));
  program.launches.push_back({.entry = entry,
                              .blocks = blocks_for(threads, kThreads, gpu),
                              .threads = kThreads,
                              .arguments = {{Argument::Kind::input, static_cast<int64_t>(move.input)},
                                            {Argument::Kind::output, static_cast<int64_t>(move.output)}}});
}

GeneratedProgram moves(const Node& node, const GpuTraits& gpu) {
  const DataType type = node.input(0)->data_type();
  const std::string unit = unit_type(type);
  GeneratedProgram program;
  program.source = "#include \"moves.cuh\"\nusing namespace tessera;\n";
  if (node.operator_name() == "pad") add_padding(program, node, unit, gpu);
  size_t number = 0;
  for (const backend::StridedMove& move : backend::strided_moves(node))
    add_move(program, move, number++, type, gpu);
  return program;
}

const GeneratedRegistration kTranspose("transpose", moves);
const GeneratedRegistration kConcat("concat", moves);
const GeneratedRegistration kSplit("split", moves);
const GeneratedRegistration kSlice("slice", moves);
const GeneratedRegistration kPad("pad", moves);

}  // namespace

std::string unit_of_bytes(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "uint8";
    case 2:
      return "uint16";
    case 4:
      return "uint32";
    case 8:
      return "uint64";
    default:
      return "uint4";
  }
}

std::string unit_type(DataType type) {
  backend::refuse_unless(!is_packed(type) && size_of(type) <= 8, "there is no kernel that moves {}",
                         to_string(type));
  return unit_of_bytes(static_cast<int64_t>(size_of(type)));
}

std::string index_up_to(int64_t farthest) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return farthest < kMost ? "int" : "int64";
}

}  // namespace tessera::cuda
