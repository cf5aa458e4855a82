// What a pass is, and the pipeline that runs them.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/clock.h"
#include "tessera/graph/graph.h"

namespace tessera {

// The arithmetic of matrix products and convolutions; master weights, reductions and statistics stay fp32.
enum class Precision { fp32, tf32, fp16, bf16 };

std::string_view to_string(Precision precision);
// Throws Error(invalid_argument) that lists the legal names.
Precision parse_precision(std::string_view text);
// Whether tf32 is what it says where it is asked for. False, and tf32 is fp32, when NVIDIA_TF32_OVERRIDE is
// 0: NVIDIA's own switch in every library.
bool tf32_allowed();

// Which gradients of a convolution a kernel makes together with what stands behind them.
enum class FusedGradients { none, data, both };

// What the device and the purpose of a compilation ask of the passes.
struct PassOptions {
  Precision precision = Precision::fp32;
  // Parameters and states never change after binding, as constants never do: what depends on them alone may
  // be folded or computed once.
  bool frozen = false;
  bool fuse = true;
  // The same bits at every run. Without it a device may use kernels whose sums vary in their order.
  bool deterministic = true;
  // Less memory for a little more work in training: cheap activations are computed again. Unset: those of
  // at most recompute_limit_bytes, and of the others the largest whose copies are together at most this share
  // of all that the graph's nodes write; both are the device's part of the choice.
  std::optional<bool> recompute = {};
  int64_t recompute_limit_bytes = std::numeric_limits<int64_t>::max();
  double recompute_share = 0;
  // The device's data gradients of convolutions add another gradient and mask the sum in one kernel.
  bool fuse_data_gradients = false;
  // Which gradients of a convolution, named by its data gradient, the device's kernel takes with a sum, the
  // relu's mask and the sums for so many batch normalizations behind the data gradient. Unset: none.
  std::function<FusedGradients(const Node& data_gradient, size_t normalizations)> takes_summed_gradients = {};
  // Whether it takes both with the gradient of a batch normalization before them. Unset: never.
  std::function<bool(const Node& data_gradient)> takes_normalized_gradients = {};
  // Whether the first of the two, where there are two normalizations, shall make the relu's result from them
  // again instead of keeping it. Unset: never.
  std::function<bool(const Node& data_gradient)> recomputes_mask = {};
  // Whether the device's kernel takes a convolution with the rest of so many batch normalizations, the sum
  // with a residual and the relu before it, and with the sums for the normalization behind it. Unset: never.
  std::function<bool(const Node& convolution, size_t normalizations, bool residual)> takes_normalized_input =
      {};
  // Whether the result of a convolution shall be added up for the batch normalization behind it where it is
  // made. Unset: never, nor behind normalizations.
  std::function<bool(const Node& convolution)> takes_statistics = {};
  // Whether the device's kernel takes a convolution or weight gradient in 16 bits, alone or fused with what
  // stands behind it, with its image as the input in fp32 of which it was rounded. Unset: never.
  std::function<bool(const Node& node)> takes_wide_image = {};
  // The device normalizes, applies relu and pools in one kernel, and so takes the gradients of the three.
  bool fuse_pooled_batch_norm = false;
  // How many reductions over the same axes one cluster may end with: what the device's clusters take.
  int reductions_per_cluster = 1;
  // Small clusters of one iteration shape that do not depend on each other are joined while they read and
  // make at most so many values, for devices on which a launch costs more than the work. 0: they stay apart.
  int values_per_joined_cluster = 0;
  // Clusters at the start and the end of a step that do not depend on each other are grouped into nodes that
  // read and make at most so many values: what one launch of the device takes. 0: they stay apart.
  int64_t values_per_group = 0;
};

struct Pass {
  std::string name;
  std::string documentation;  // one line
  // Rewrites the graph; returns whether it changed it.
  std::function<bool(Graph& graph, const PassOptions& options)> run;
};

// Every pass in order: the readable list is src/passes/pipeline.cpp.
std::vector<Pass> pipeline(const PassOptions& options);

struct PipelineOptions {
  std::set<std::string> disabled;  // names of passes to leave out
  bool verify = false;             // run the verifier after each pass that changed the graph
  // Called with the pass's name and the graph after each pass that changed it.
  std::function<void(const std::string& pass, const Graph& graph)> dump;
};

struct PassReport {
  std::string name;
  bool changed = false;
  TimeSpan time;
  size_t nodes_before = 0;
  size_t nodes_after = 0;
};

// Throws Error(invalid_graph) "after pass 'x': ..." when a pass breaks a rule, and Error(invalid_argument)
// when a disabled name is unknown.
std::vector<PassReport> run_pipeline(Graph& graph, const std::vector<Pass>& passes,
                                     const PassOptions& options, const PipelineOptions& pipeline_options);

}  // namespace tessera
