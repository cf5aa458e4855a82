// What kernels of bytes share: the right factor is packed, once where it never changes, and the left factor's
// rows are widened a few at a time into the second-level cache and multiplied with all of it.
#pragma once

#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cpu/bytes/byte_product.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {

// y[rows, groups, columns] = left[rows, groups, depth] right[groups, depth, columns] + bias[groups, columns].
// The node's inputs are left, right and, if there is one, the bias.
struct ByteProblem {
  ByteProduct product;  // of a group
  int64_t groups = 1;
  int64_t rows = 0;
  StoredBytes right;  // without data; those of a group follow those of the one before
  bool frozen = false;
  bool has_bias = false;
};

class ByteKernel : public Kernel {
 public:
  // Rows that are widened at a time, at most.
  static constexpr int64_t kMostRows = 48;

  explicit ByteKernel(const ByteProblem& problem);

  int64_t workspace_bytes() const override { return workspace_.bytes(rows_.parts); }
  std::vector<Packing> packings() const override;
  void pack(size_t index, const void* memory, void* packed) const override;
  void run(const KernelArguments& arguments) override;

 protected:
  // Rows of a group's left factor, each product().row() after the one before, of which depth elements are
  // set.
  virtual void widen_rows(const void* left, int64_t group, Range rows, int16_t* widened) const = 0;
  const ByteProduct& product() const { return problem_.product; }

 private:
  int64_t packed_elements() const { return problem_.groups * product().packed(); }
  void pack_one(const void* right, int64_t panel, int16_t* packed) const;
  void run_block(const KernelArguments& arguments, const int16_t* packed, void* own, Range rows) const;

  ByteProblem problem_;
  Blocks panels_;  // of the right factor, through all groups
  Blocks rows_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<int16_t> packed_;   // [groups, panels, row / 2, panel, 2]
  backend::WorkspaceArray<int16_t> widened_;  // [rows, row]
  backend::WorkspaceArray<int32_t> sums_;
};

}  // namespace tessera::cpu
