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
#include "tessera/passes/decompose.h"
#include "tessera/passes/fusion_pattern.h"

namespace tessera {

// The arithmetic of matrix products and convolutions; master weights, reductions and statistics stay fp32.
enum class Precision { fp32, tf32, fp16, bf16 };

std::string_view to_string(Precision precision);
// Throws Error(invalid_argument) that lists the legal names.
Precision parse_precision(std::string_view text);
// What values between contractions are rounded to; none where the precision is a property of the kernels, not
// of the graph.
std::optional<DataType> lowered_type(Precision precision);
// Whether tf32 is what it says where it is asked for. False, and tf32 is fp32, when NVIDIA_TF32_OVERRIDE is
// 0: NVIDIA's own switch in every library.
bool tf32_allowed();

// What a user may ask of the passes, and the purpose of a compilation.
struct PassOptions {
  Precision precision = Precision::fp32;
  // Parameters and states never change after binding, as constants never do: what depends on them alone may
  // be folded or computed once.
  bool frozen = false;
  bool fuse = true;
  // The same bits at every run. Without it a device may use kernels whose sums vary in their order.
  bool deterministic = true;
  // Less memory for a little more work in training: cheap activations are recomputed. Unset: as the
  // device likes it.
  std::optional<bool> recompute = {};
  // What several ranks add up together, such as all gradients of a step, travels in buckets of about so many
  // bytes, each as soon as it is made; 0: all at once. Unset: as the device likes it.
  std::optional<int64_t> bucket_bytes = {};
};

// What a device tells the passes of its kernels and its memory.
struct PassTarget {
  // In the order in which they are looked for.
  std::vector<FusionPattern> patterns = {};
  // Whether the device's kernel takes a convolution or weight gradient in 16 bits, alone or fused with what
  // follows it, with its image as the input in fp32 of which it was rounded. Unset: never.
  std::function<bool(const Node& node)> takes_wide_image = {};
  // What a node is in simpler ones, where the device has no kernel of its own for it; an empty rule where it
  // has. Unset: it has for all.
  std::function<GraphRule(const Node& node)> expansion = {};
  // Where nobody says whether to recompute activations: those of at most so many bytes are, and of the others
  // the largest whose copies are together at most a share of all that the graph's nodes write: the second one
  // where they write so many bytes.
  int64_t recompute_limit_bytes = std::numeric_limits<int64_t>::max();
  double recompute_share = 0;
  double recompute_share_of_large_steps = 0;
  int64_t large_step_bytes = std::numeric_limits<int64_t>::max();
  // The same of elementwise values that are made anew beside the reader of what they are made of, which costs
  // no more than to write them: a share of what all nodes write and compute, where an operation counts as so
  // many bytes.
  double recompute_share_beside = 0;
  double bytes_per_flop = 0;
  // Whether the kernel that a weight gradient becomes part of makes the activation it reads by itself, so
  // that no copy is made for it. Unset: never.
  std::function<bool(const Node& weight_gradient)> recomputes_activation = {};
  // How many columns a matrix product's result had better have, where what reads it takes more than it needs:
  // more than it has where that pays. Unset: as many as it has.
  std::function<int64_t(const Node& product)> padded_columns = {};
  // How many rows of a matrix product are made at a time where nothing but losses reads them, and what comes
  // of those: fewer than it has where they would take much memory. Unset: all.
  std::function<int64_t(const Node& product)> logit_rows = {};
  // Whether the device's clusters take a node beside those in whose types operators compute. Unset: no other.
  std::function<bool(const Node& node)> clusters_take = {};
  // How many reductions over the same axes one cluster may end with: what the device's clusters take.
  int reductions_per_cluster = 1;
  // Small clusters of one iteration shape that do not depend on each other are joined while they read and
  // make at most so many values, for devices on which a launch costs more than the work. 0: they stay apart.
  int values_per_joined_cluster = 0;
  // Clusters at the start and the end of a step that do not depend on each other are grouped into nodes that
  // read and make at most so many values: what one launch of the device takes. 0: they stay apart.
  int64_t values_per_group = 0;
  // Whether one kernel of the device may be the faster way for a matrix product, alone or fused, with the
  // elementwise node or cluster that makes its first factor, and nothing else, and the one that reads it. One
  // of the two may be null. Unset: never.
  std::function<bool(const Node* before, const Node& product, const Node* after)> clusters_products = {};
  // PassOptions::bucket_bytes where nobody says it: more than 0 where the device exchanges values beside
  // other work.
  int64_t bucket_bytes = 0;
  // Values that ranks add up together become one value, each whose bytes are a multiple of this with a place
  // in it, for devices that exchange one piece faster than many. 0: they stay apart.
  int64_t joined_reduction_alignment = 0;
};

struct PassContext {
  PassOptions options = {};
  PassTarget target = {};
};

struct Pass {
  std::string name;
  std::string documentation;  // one line
  // Rewrites the graph; returns whether it changed it.
  std::function<bool(Graph& graph, const PassContext& context)> run;
  // Names of passes: each of their runs is before all of this one's, and after all of this one's. Those that
  // a list does not hold say nothing of it.
  std::vector<std::string> after = {};
  std::vector<std::string> before = {};
};

// Every pass in order: the readable list is src/passes/pipeline.cpp.
std::vector<Pass> pipeline(const PassOptions& options);

// Throws Error(internal) that names both where one pass runs on the wrong side of another.
void check_order(const std::vector<Pass>& passes);

struct PipelineOptions {
  // Names of passes to leave out; "fuse_patterns/KIND" leaves out the device's patterns of that kind.
  std::set<std::string> disabled;
  bool verify = false;  // run the verifier after each pass that changed the graph
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
                                     const PassContext& context, const PipelineOptions& pipeline_options);

}  // namespace tessera
