#include "device/cpu/cluster/cluster_kernel.h"

#include <algorithm>
#include <optional>

#include <omp.h>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

#include "device/cpu/cluster/cluster_runner.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/runtime/parallel_region.h"

namespace tessera::cpu {
namespace {

// Below this many element operations a second thread costs more than it brings.
constexpr int64_t kSerialWork = 1 << 15;

// How the work of an ending reduction is cut. The cut depends on the shapes alone, and the parts are added in
// order, so that the bits do not depend on the threads.
struct Partition {
  enum class Kind {
    outer,    // ranges of the outermost axis, which the result keeps: each part has results of its own
    columns,  // ranges of columns, which the result keeps
    partial,  // ranges of tiles, each with a full set of accumulators, added at the end
  };
  Kind kind = Kind::partial;
  int64_t parts = 1;
};

Partition choose_partition(const Program& program) {
  constexpr int64_t kMostParts = 64;
  const IterationSpace& space = program.space;
  const bool keeps_outer = !space.reduced.front();
  const bool keeps_inner = !space.reduced.back();
  const int64_t per_row = program.tiling.tiles_per_row();
  if (keeps_inner && per_row >= 16 &&
      (space.extents.size() == 1 || (space.extents.size() == 2 && !keeps_outer))) {
    return {Partition::Kind::columns, per_row};
  }
  if (keeps_outer && space.extents.size() > 1 && (space.extents[0] >= 8 || program.results > (1 << 16))) {
    return {Partition::Kind::outer, std::min(space.extents[0], kMostParts)};
  }
  const int64_t fitting = program.results <= 1024 ? kMostParts : program.results <= (1 << 15) ? 16 : 4;
  return {Partition::Kind::partial,
          std::max<int64_t>(std::min(fitting, program.tiling.count(0, space.rows())), 1)};
}

class ClusterKernel : public Kernel {
 public:
  explicit ClusterKernel(Program program) : program_(std::move(program)) {
    const IterationSpace& space = program_.space;
    elements_ = space.elements();
    work_ = elements_ * static_cast<int64_t>(program_.body.size() + 1);
    if (!program_.reduces) return;
    partition_ = choose_partition(program_);
    loops_ = find_reduction(program_.reduction, program_.reduced_type);
    for (size_t axis = 0; axis < space.extents.size(); ++axis) {
      if (space.reduced[axis]) reduced_count_ *= space.extents[axis];
    }
  }

  int64_t workspace_bytes() const override {
    if (!program_.reduces) return 0;
    return program_.results * kAccumulatorBytes *
           (partition_.kind == Partition::Kind::partial ? partition_.parts : 1);
  }

  bool may_overwrite(size_t output, size_t input) const override {
    const ProgramOutput& out = program_.outputs.at(output);
    const ProgramInput& in = program_.inputs.at(input);
    return !out.reduction && !in.raw && in.contiguous && size_of(in.type) == size_of(out.type) &&
           in.last_read <= out.written;
  }

  void run(const KernelArguments& arguments) override {
    if (program_.reduces) {
      run_reduction(arguments);
    } else if (elements_ > 0) {
      run_elementwise(arguments);
    }
  }

 private:
  int threads() const { return work_ < kSerialWork ? 1 : omp_get_max_threads(); }

  void run_elementwise(const KernelArguments& arguments) const {
    const int64_t rows = program_.space.rows();
    const int64_t tiles = program_.tiling.count(0, rows);
    in_parallel(threads(), [&](int64_t own, int64_t count) {
      TileRunner runner(program_, arguments);
      for (int64_t k = tiles * own / count; k < tiles * (own + 1) / count; ++k) {
        runner.run(program_.tiling.tile(0, rows, k));
      }
    });
  }

  void run_reduction(const KernelArguments& arguments) const {
    auto* accumulators = static_cast<char*>(arguments.workspace);
    in_parallel(threads(), [&](int64_t own, int64_t count) {
      TileRunner runner(program_, arguments);
      const int64_t last = partition_.parts * (own + 1) / count;
      for (int64_t part = partition_.parts * own / count; part < last; ++part) {
        run_part(runner, part, accumulators);
      }
    });
    if (partition_.kind == Partition::Kind::partial) {
      for (int64_t part = 1; part < partition_.parts; ++part) {
        loops_.combine(accumulators, accumulators + part * program_.results * kAccumulatorBytes,
                       program_.results);
      }
    }
    loops_.finish(accumulators, program_.results, reduced_count_,
                  arguments.outputs[static_cast<size_t>(program_.reduction_output)]);
  }

  void run_part(TileRunner& runner, int64_t part, char* accumulators) const {
    const Tiling& tiling = program_.tiling;
    const int64_t rows = program_.space.rows();
    const auto take = [&](const Tile& tile, char* into) {
      runner.run(tile);
      runner.reduce(loops_, tile, into);
    };
    const auto share = [&](int64_t total, int64_t of) { return total * of / partition_.parts; };
    switch (partition_.kind) {
      case Partition::Kind::columns: {
        const Tile first = tiling.tile(0, rows, part);
        loops_.clear(accumulators + first.column * kAccumulatorBytes, first.columns);
        for (int64_t row = 0; row < rows; ++row) take({row, 1, first.column, first.columns}, accumulators);
        break;
      }
      case Partition::Kind::outer: {
        const int64_t extent = program_.space.extents.front();
        const int64_t stride = program_.result_strides.front();
        const int64_t first = share(extent, part);
        const int64_t last = share(extent, part + 1);
        loops_.clear(accumulators + first * stride * kAccumulatorBytes, (last - first) * stride);
        const int64_t per_index = extent == 0 ? 0 : rows / extent;
        const int64_t tiles = tiling.count(first * per_index, last * per_index);
        for (int64_t k = 0; k < tiles; ++k) {
          take(tiling.tile(first * per_index, last * per_index, k), accumulators);
        }
        break;
      }
      case Partition::Kind::partial: {
        char* own = accumulators + part * program_.results * kAccumulatorBytes;
        loops_.clear(own, program_.results);
        const int64_t tiles = tiling.count(0, rows);
        for (int64_t k = share(tiles, part); k < share(tiles, part + 1); ++k)
          take(tiling.tile(0, rows, k), own);
        break;
      }
    }
  }

  Program program_;
  Partition partition_;
  ReductionLoops loops_;
  int64_t elements_ = 0;
  int64_t work_ = 0;
  int64_t reduced_count_ = 1;
};

}  // namespace

bool clusters_take(const Node& node) {
  const auto& inputs = node.inputs();
  const auto& outputs = node.outputs();
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Value* value) { return has_lane(value->data_type()); }) &&
         std::all_of(outputs.begin(), outputs.end(),
                     [](const auto& value) { return has_lane(value->data_type()); });
}

KernelCandidate cluster_candidate() {
  return backend::candidate_of<ClusterKernel>("loops.cluster", [](const KernelRequest& request) {
    return compile_cluster(*cluster_body(request.node));
  });
}

}  // namespace tessera::cpu
