#include "device/cpu/bytes/byte_kernel.h"

#include <fmt/format.h>

#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kWidenedBytes = int64_t{1} << 18;  // of a block of rows

}  // namespace

ByteKernel::ByteKernel(const ByteProblem& problem)
    : problem_(problem), panels_(cut_into_panels(problem.groups * problem.product.panels(), 1)) {
  const int64_t fitting = kWidenedBytes / (product().row() * int64_t{sizeof(int16_t)});
  rows_ = cut_into_blocks(problem.rows, std::clamp(fitting, kPanelRows, kMostRows));
  if (!problem.frozen) packed_ = workspace_.shared.book<int16_t>(packed_elements());
  widened_ = workspace_.own.book<int16_t>(rows_.size * product().row());
  sums_ = workspace_.own.book<int32_t>(product().sums());
}

std::vector<Packing> ByteKernel::packings() const {
  if (!problem_.frozen) return {};
  const StoredBytes& right = problem_.right;
  return {{.input = 1,
           .layout = fmt::format("{} in 16 bits {}x{}x{} of strides {} {}, {} columns a panel",
                                 to_string(right.type), problem_.groups, product().depth, product().columns,
                                 right.depth_stride, right.stride, product().panel()),
           .bytes = packed_elements() * int64_t{sizeof(int16_t)}}};
}

void ByteKernel::pack(size_t, const void* memory, void* packed) const {
  for (int64_t panel = 0; panel < panels_.count(); ++panel)
    pack_one(memory, panel, static_cast<int16_t*>(packed));
}

void ByteKernel::run(const KernelArguments& arguments) {
  const auto* packed = static_cast<const int16_t*>(problem_.frozen ? arguments.packed[0] : nullptr);
  if (!problem_.frozen) {
    int16_t* made = packed_.in(arguments.workspace);
    for_each_block(panels_.parts, panels_.count(), Order::forwards,
                   [&](int64_t, int64_t panel) { pack_one(arguments.inputs[1], panel, made); });
    packed = made;
  }
  for_each_block(rows_.parts, rows_.count(), Order::forwards, [&](int64_t thread, int64_t block) {
    run_block(arguments, packed, workspace_.own_of(arguments.workspace, thread), rows_.block(block));
  });
}

void ByteKernel::pack_one(const void* right, int64_t panel, int16_t* packed) const {
  StoredBytes own = problem_.right;
  own.data =
      static_cast<const std::byte*>(right) + panel / product().panels() * product().columns * product().depth;
  pack_panel(product(), own, panel % product().panels(), packed + panel * product().packed_panel());
}

void ByteKernel::run_block(const KernelArguments& arguments, const int16_t* packed, void* own,
                           Range rows) const {
  const int64_t columns = problem_.groups * product().columns;
  const auto* bias = static_cast<const int32_t*>(problem_.has_bias ? arguments.inputs[2] : nullptr);
  auto* y = static_cast<int32_t*>(arguments.outputs[0]) + rows.begin * columns;
  int16_t* widened = widened_.in(own);
  for (int64_t group = 0; group < problem_.groups; ++group) {
    widen_rows(arguments.inputs[0], group, rows, widened);
    // Where the depth is odd, what it is made even by.
    for (int64_t i = 0; i < rows.size() && product().row() > product().depth; ++i)
      widened[i * product().row() + product().depth] = 0;
    const int64_t first = group * product().columns;
    multiply(product(), {.left = widened,
                         .rows = rows.size(),
                         .packed = packed + group * product().packed(),
                         .bias = bias == nullptr ? nullptr : bias + first,
                         .sums = sums_.in(own),
                         .y = y + first,
                         .y_row = columns});
  }
}

}  // namespace tessera::cpu
