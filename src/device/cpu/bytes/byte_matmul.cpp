#include "device/cpu/bytes/byte_matmul.h"

#include "tessera/device/common/refusal.h"

#include "device/cpu/bytes/byte_kernel.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/onednn.h"

namespace tessera::cpu {
namespace {

struct ByteMatmulRequest {
  StoredBytes left;  // without data
  ByteProblem bytes;
};

ByteMatmulRequest read_request(const KernelRequest& request) {
  const Node& node = request.node;
  refuse_unless(node.output()->data_type() == DataType::int32, "not bytes");
  const Shape a = node.input(0)->type().static_shape();
  const Shape b = node.input(1)->type().static_shape();
  const bool transpose_a = node.attributes().boolean("transpose_a");
  const bool transpose_b = node.attributes().boolean("transpose_b");
  refuse_unless(element_count(a) > 0 && element_count(b) > 0, "a tensor without elements");
  refuse_unless(element_count(b) == b[b.size() - 2] * b.back(), "several right-hand matrices");
  refuse_unless(!transpose_a || element_count(a) == a[a.size() - 2] * a.back(),
                "several transposed matrices");
  const int64_t depth = b[b.size() - (transpose_b ? 1 : 2)];
  const int64_t columns = element_count(b) / depth;
  const int64_t rows = element_count(a) / depth;
  ByteMatmulRequest result;
  result.left = {.type = node.input(0)->data_type(),
                 .stride = transpose_a ? 1 : depth,
                 .depth_stride = transpose_a ? rows : 1};
  result.bytes = {.product = {.depth = depth, .columns = columns},
                  .rows = rows,
                  .right = {.type = node.input(1)->data_type(),
                            .stride = transpose_b ? depth : 1,
                            .depth_stride = transpose_b ? 1 : columns},
                  .frozen = is_frozen_input(request, 1)};
  return result;
}

class ByteMatmul : public ByteKernel {
 public:
  explicit ByteMatmul(const ByteMatmulRequest& request) : ByteKernel(request.bytes), left_(request.left) {}

 private:
  void widen_rows(const void* left, int64_t, Range rows, int16_t* widened) const override {
    StoredBytes own = left_;
    own.data = left;
    for (int64_t row = rows.begin; row < rows.end; ++row, widened += product().row())
      widen_bytes(own, row, product().depth, widened);
  }

  StoredBytes left_;
};

}  // namespace

KernelCandidate byte_matmul_candidate() {
  return backend::candidate_of<ByteMatmul>("loops.bytes", read_request);
}

}  // namespace tessera::cpu
