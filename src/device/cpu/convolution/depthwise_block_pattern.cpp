#include "device/cpu/convolution/depthwise_block_pattern.h"

#include <algorithm>
#include <string>

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

#include "device/cpu/convolution/depthwise_block.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/panels/loop_epilogue.h"
#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {
namespace {

void refuse_unless_whole_vectors(const ConvolutionProblem& problem) {
  refuse_unless(problem.output_channels() % vector_width() == 0, "{} channels are no whole vectors of {}",
                problem.output_channels(), vector_width());
}

// With what follows it, or alone.
FusionMatch chain_of(Node& convolution) {
  static const FusionPattern kChain =
      backend::contraction_pattern("convolution", {.takes_activation = loops_end_with, .ordered = true});
  if (std::optional<FusionMatch> chain = kChain.match(convolution)) return *std::move(chain);
  FusionMatch alone{.members = {&convolution}, .outputs = {convolution.output()}};
  alone.add_roles_of(convolution);
  return alone;
}

// Whether a whole tensor is added, and not only a bias.
bool adds_residual(const FusionMatch& chain) {
  return std::ranges::any_of(chain.members, [&](const Node* member) {
    return member->operator_name() == "add" && member->output() != chain.value("biased");
  });
}

using Refusal = void (*)(const ConvolutionProblem&);

bool is_taken(const Node& convolution, Refusal refuse) {
  const auto taken = backend::unless_refused([&] {
    refuse(problem_of(convolution));
    return true;
  });
  return taken.has_value() && is_settled(*convolution.input(1));
}

// The convolution that alone reads what the chain gives, unless the chain adds to it.
Node* next_of(const FusionMatch& chain, Refusal refuse) {
  const Value* result = chain.outputs.front();
  Node* next = sole_reader(result, "convolution");
  const bool follows =
      next != nullptr && next->input(0) == result && !adds_residual(chain) && is_taken(*next, refuse);
  return follows ? next : nullptr;
}

struct Links {
  std::optional<FusionMatch> expand;
  std::optional<FusionMatch> depthwise;
  std::optional<FusionMatch> project;
};

Links find_links(Node& anchor, const JoinsProduct& joins_product) {
  Links links;
  Node* depthwise = &anchor;
  if (is_taken(anchor, refuse_unless_pointwise)) {
    links.expand = chain_of(anchor);
    depthwise = next_of(*links.expand, refuse_unless_depthwise);
    if (depthwise == nullptr) return {};
  } else if (!is_taken(anchor, refuse_unless_depthwise)) {
    return {};
  }
  links.depthwise = chain_of(*depthwise);
  Node* project = next_of(*links.depthwise, refuse_unless_pointwise);
  if (project != nullptr && joins_product(problem_of(*depthwise), links.expand.has_value()))
    links.project = chain_of(*project);
  return links;
}

std::optional<FusionMatch> find_block(Node& anchor, const JoinsProduct& joins_product) {
  if (anchor.output()->data_type() != DataType::fp32 || !anchor.output()->type().is_static())
    return std::nullopt;
  const Links links = find_links(anchor, joins_product);
  if (!links.expand.has_value() && !links.project.has_value()) return std::nullopt;
  FusionMatch result;
  const auto append = [&](const std::optional<FusionMatch>& chain, const char* prefix) {
    if (!chain.has_value()) return;
    result.members.insert(result.members.end(), chain->members.begin(), chain->members.end());
    result.outputs = chain->outputs;
    for (const FusionRole& role : chain->roles) result.add_role(prefix + role.name, role.value);
  };
  append(links.expand, kExpand);
  append(links.depthwise, kDepthwise);
  append(links.project, kProject);
  return result;
}

}  // namespace

void refuse_unless_pointwise(const ConvolutionProblem& problem) {
  refuse_unless(problem.is_pointwise(), "a window is not one element");
  refuse_unless_whole_vectors(problem);
}

void refuse_unless_depthwise(const ConvolutionProblem& problem) {
  refuse_unless(problem.is_depthwise(), "channels are not each by itself");
  refuse_unless(problem.source.size() == 4, "{} spatial axes", problem.source.size() - 2);
  refuse_unless_whole_vectors(problem);
}

bool fills_threads(const ConvolutionProblem& depthwise, bool expands) {
  return depthwise_tiling(depthwise, expands, /*projects=*/true).fills_threads;
}

FusionPattern depthwise_block_pattern(const JoinsProduct& joins_product) {
  FusionPattern pattern{.kind = "depthwise_block", .anchor = "convolution"};
  pattern.match = [joins_product](Node& anchor) { return find_block(anchor, joins_product); };
  for (const std::string prefix : {kExpand, kDepthwise, kProject}) {
    for (const char* role : {"x", "weight", "y", "bias", "biased", "step"})
      pattern.roles.push_back(prefix + role);
  }
  return pattern;
}

}  // namespace tessera::cpu
