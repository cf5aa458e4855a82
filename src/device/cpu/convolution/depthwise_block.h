// Kernel of depthwise_block_pattern(): each thread takes a tile at a time, some lines of the depthwise
// result, through all of the block's convolutions, some channels at a time, so that what lies between them
// stays in its second-level cache.
//
// Channels of a depthwise convolution are apart, so groups of them repeat nothing; lines of neighboring tiles
// share what the window reaches over, and make it twice. Products after it add up over groups.
#pragma once

#include <optional>
#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/convolution/window_lines.h"
#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/loop_epilogue.h"
#include "device/cpu/panels/panel_packing.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {

// One of the block's convolutions.
struct BlockStage {
  ConvolutionProblem problem;
  EpilogueRequest epilogue;
  size_t weight = 0;  // place among the node's inputs
};

struct DepthwiseBlockRequest {
  size_t data = 0;
  std::optional<BlockStage> expand;
  BlockStage depthwise;
  std::optional<BlockStage> project;
};

struct DepthwiseTiling {
  Blocks panels;  // of channels
  Blocks groups;  // of panels: what is in the cache at a time
  Blocks lines;   // of an image of the depthwise result
  // Whether there are tiles for all threads as the cache holds them. Otherwise products after the depthwise
  // convolution cut them smaller, and more of them is made twice.
  bool fills_threads = false;
};
DepthwiseTiling depthwise_tiling(const ConvolutionProblem& depthwise, bool expands, bool projects);

class DepthwiseBlock : public Kernel {
 public:
  explicit DepthwiseBlock(const DepthwiseBlockRequest& request);

  int64_t workspace_bytes() const override { return workspace_.bytes(threads_); }
  std::vector<Packing> packings() const override;
  void pack(size_t index, const void* memory, void* packed) const override;
  void run(const KernelArguments& arguments) override;

 private:
  struct Run;
  struct Tile;
  struct Group;

  Tile tile_at(int64_t index) const;
  Group group_at(int64_t index) const;
  void expand(const Run& run, const Tile& tile, const Group& group) const;
  void depthwise(const Run& run, const Tile& tile, const Group& group) const;
  void project(const Run& run, const Tile& tile, const Group& group) const;

  DepthwiseBlockRequest request_;
  WindowAxes axes_;
  int64_t images_;
  int64_t channels_;  // of the depthwise convolution
  int64_t taps_;
  std::optional<PanelPacking> expand_;
  std::optional<PanelPacking> project_;
  StridedCopy turn_weight_;  // [channels, taps] to [taps, channels]
  DepthwiseTiling tiling_;
  int64_t tasks_;
  int64_t threads_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<WindowLine> found_;  // of the window
  backend::WorkspaceArray<float> expanded_;    // [lines, pixels, channels] of a tile and a group
  backend::WorkspaceArray<float> middle_;      // the same of the depthwise result
};

}  // namespace tessera::cpu
