// y[rows, columns] = x[rows, depth] weight[depth, columns], fp32: matrix products, and convolutions, where a
// row of x is a pixel's channels, or all that its window reads.
//
// Only the weight is packed, once where it is frozen; rows of x are read as they lie unless windows are
// gathered.
#pragma once

#include <optional>
#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cpu/convolution/window_patches.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/loop_epilogue.h"
#include "device/cpu/panels/panel_packing.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {

struct PanelProblem {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  bool transposed = false;  // the weight is stored [columns, depth]
  bool frozen = false;      // and packed once
  size_t data = 0;          // places among the node's inputs
  size_t weight = 1;
  EpilogueRequest epilogue = {};
  std::optional<WindowPatches> patches = {};  // none: x is [rows, depth]
};

// Columns that are no whole vectors, and rows too few to be worth packing a weight that is not frozen.
void refuse_bad_sizes(const PanelProblem& problem);

class PanelKernel : public Kernel {
 public:
  explicit PanelKernel(const PanelProblem& problem);

  int64_t workspace_bytes() const override { return workspace_.bytes(rows_.parts); }
  std::vector<Packing> packings() const override;
  void pack(size_t index, const void* memory, void* packed) const override;
  void run(const KernelArguments& arguments) override;

 private:
  struct Run;
  struct Part;

  const float* packed_weight(const KernelArguments& arguments) const;
  void multiply(const Run& run, int64_t block, Range panels, float* patches) const;
  void multiply_part(const Run& run, const Part& part) const;

  PanelProblem problem_;
  Blocks rows_;
  Blocks depths_;
  PanelPacking packing_;
  int64_t shares_ = 1;  // of the panels
  bool stream_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> packed_;   // [panels, depth, panel]
  backend::WorkspaceArray<float> patches_;  // [rows, depth]
};

}  // namespace tessera::cpu
