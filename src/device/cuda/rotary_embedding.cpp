#include <algorithm>

#include <fmt/format.h>

#include "tessera/device/common/rotary_rows.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/moves.h"

namespace tessera::cuda {
namespace {

// Pairs that a thread has at a time: accesses of 16 bytes, or as many numbers as divide a row.
int64_t pairs_at_a_time(int64_t half, DataType type) {
  int64_t pairs = 16 / static_cast<int64_t>(size_of(type));
  while (half % pairs != 0) pairs /= 2;
  return pairs;
}

GeneratedProgram rotary_embedding(const Node& node, const GpuTraits& gpu) {
  constexpr int kThreads = 256;
  const backend::RotaryRows at = backend::rotary_rows(node);
  const int64_t pairs = pairs_at_a_time(at.half, node.input(0)->data_type());
  const int64_t blocks = blocks_for(at.rows * at.half / pairs, kThreads, gpu);
  // Where there are no rows nothing is launched, but the text divides.
  const auto divisor = [](int64_t rows) { return std::max<int64_t>(rows, 1); };
  const std::string statement =
      fmt::format("  rotary_embedding<{}, {}, {}, {}>(x0, x1, x2, y0, RotaryRows<{}>{{{}, {}, {}, {}}});",
                  pairs, at.half, node.attributes().boolean("interleaved"),
                  node.attributes().boolean("inverse"), index_up_to(2 * at.rows * at.half), at.rows,
                  divisor(at.tokens), divisor(at.token_rows), divisor(at.batch_rows));
  GeneratedProgram program = simple_program(node, "rotary_embedding.cuh", statement, blocks, kThreads);
  program.may_overwrite = [](size_t, size_t input) { return input == 0; };
  return program;
}

const GeneratedRegistration kRotaryEmbedding("rotary_embedding", rotary_embedding);

}  // namespace
}  // namespace tessera::cuda
