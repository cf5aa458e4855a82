#include "device/cuda/convolution/pointwise_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/passes/fuse.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

}  // namespace

PointwiseProblem::PointwiseProblem(const Node& node, const Value& x, const Value& y, bool tf32)
    : type(x.data_type()),
      pixels(x.type().element_count()),
      inputs(x.type().static_shape().back()),
      outputs(y.type().static_shape().back()) {
  refuse_unless(is_pointwise(node), "windows, strides, padding or groups");
  refuse_unless_multiplied(type, tf32);
  if (type == DataType::fp32) item = kItem / 2;
  refuse_unless(pixels > 0, "a tensor without elements");
  pixels /= inputs;
  constexpr int64_t kMostPixels = int64_t{1} << 30;  // an int holds those of the items ahead too
  refuse_unless(pixels < kMostPixels, "{} pixels", pixels);
}

int64_t PointwiseProblem::items() const {
  return quotient_rounded_up(pixels, item);
}

int64_t PointwiseProblem::stages_in(int64_t elements, int64_t others, const GpuTraits& gpu) const {
  return (gpu.block_shared_bytes(1) - bytes_of(others)) / bytes_of(elements);
}

void PointwiseProblem::set_stages(int64_t elements, int64_t others, const GpuTraits& gpu, int64_t most) {
  stages = std::min(stages_in(elements, others, gpu), most);
  refuse_unless(stages >= kLeastStages, "items of {} bytes", bytes_of(elements));
}

std::string PointwiseProblem::print(std::string_view header, const std::string& constants) const {
  return fmt::format(
      "#include \"{}\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
      "  static constexpr int pixels = {}, item = {}, stages = {}, {};\n}};\n",
      header, device_type(type), pixels, item, stages, constants);
}

}  // namespace tessera::cuda
