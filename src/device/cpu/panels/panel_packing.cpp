#include "device/cpu/panels/panel_packing.h"

#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {
namespace {

// Of some columns of the weight to [depth, panel].
StridedCopy copy_of(int64_t depth, int64_t columns, int64_t row, int64_t column, int64_t panel) {
  return {{depth, columns}, {0, {row, column}}, {0, {panel, 1}}, int64_t{sizeof(float)}};
}

}  // namespace

PanelPacking::PanelPacking(int64_t depth, int64_t columns, bool transposed)
    : depth_(depth),
      columns_(columns),
      column_(transposed ? depth : 1),
      panels_(cut_into_panels(columns, panel_width())),
      whole_(copy_of(depth, panels_.size, transposed ? 1 : columns, column_, panels_.size)),
      last_(copy_of(depth, panels_.block(panels_.count() - 1).size(), transposed ? 1 : columns, column_,
                    panels_.size)) {}

Packing PanelPacking::of_input(size_t input) const {
  return {
      .input = input,
      .layout = fmt::format("panels of {}, {}x{}, columns {} apart", panels_.size, depth_, columns_, column_),
      .bytes = elements() * static_cast<int64_t>(sizeof(float))};
}

void PanelPacking::pack_panel(const float* weight, float* packed, int64_t panel) const {
  const StridedCopy& copy = panel + 1 < panels_.count() ? whole_ : last_;
  copy.run(weight + panels_.block(panel).begin * column_, packed + panel * panel_elements());
}

void PanelPacking::pack(const void* weight, void* packed) const {
  for (int64_t panel = 0; panel < panels_.count(); ++panel)
    pack_panel(static_cast<const float*>(weight), static_cast<float*>(packed), panel);
}

}  // namespace tessera::cpu
