// A matrix product's weight in panels of columns, each read from end to end: [panels, depth, columns of a
// panel].
#pragma once

#include <string>

#include "tessera/compile/kernel.h"

#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/panels/blocks.h"

namespace tessera::cpu {

class PanelPacking {
 public:
  // Of a weight that is stored [depth, columns] or, transposed, [columns, depth].
  PanelPacking(int64_t depth, int64_t columns, bool transposed);

  const Blocks& panels() const { return panels_; }  // of columns
  int64_t panel_elements() const { return depth_ * panels_.size; }
  int64_t elements() const { return panels_.count() * panel_elements(); }
  // Of the input that is the weight.
  Packing of_input(size_t input) const;
  void pack_panel(const float* weight, float* packed, int64_t panel) const;
  void pack(const void* weight, void* packed) const;

 private:
  int64_t depth_;
  int64_t columns_;
  int64_t column_;  // from one to the next, where the weight is stored
  Blocks panels_;
  StridedCopy whole_;
  StridedCopy last_;
};

}  // namespace tessera::cpu
