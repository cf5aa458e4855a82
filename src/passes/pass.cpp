#include "tessera/passes/pass.h"

#include <algorithm>
#include <cstdlib>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/passes/run_pass.h"

namespace tessera {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
  }
  return "?";
}

Precision parse_precision(std::string_view text) {
  for (Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
    if (to_string(precision) == text) return precision;
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a precision (fp32, tf32, fp16, bf16)", text);
}

std::optional<DataType> lowered_type(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return DataType::fp16;
    case Precision::bf16:
      return DataType::bf16;
    case Precision::fp32:
    case Precision::tf32:
      break;
  }
  return std::nullopt;
}

bool tf32_allowed() {
  const char* override = std::getenv("NVIDIA_TF32_OVERRIDE");
  return override == nullptr || std::string_view(override) != "0";
}

namespace {

std::string name_of(const FusionPattern& pattern) {
  return "fuse_patterns/" + pattern.kind;
}

bool names(const std::vector<std::string>& list, const Pass& pass) {
  return std::find(list.begin(), list.end(), pass.name) != list.end();
}

}  // namespace

void check_order(const std::vector<Pass>& passes) {
  for (auto later = passes.begin(); later != passes.end(); ++later) {
    for (auto earlier = passes.begin(); earlier != later; ++earlier) {
      if (!names(earlier->after, *later) && !names(later->before, *earlier)) continue;
      fail(ErrorCode::internal, "pass '{}' runs before '{}' and must run after it", earlier->name,
           later->name);
    }
  }
}

PassReport run_pass(Graph& graph, const Pass& pass, const PassContext& context,
                    const PipelineOptions& options) {
  PassReport report{.name = pass.name, .time = {}, .nodes_before = graph.nodes().size()};
  report.time.begin = Clock::now();
  report.changed = pass.run(graph, context);
  report.time.end = Clock::now();
  report.nodes_after = graph.nodes().size();
  if (report.changed && options.verify) {
    try {
      verify(graph);
    } catch (const Error& error) {
      fail(ErrorCode::invalid_graph, "after pass '{}': {}", pass.name, error.what());
    }
  }
  if (report.changed && options.dump) options.dump(pass.name, graph);
  return report;
}

std::vector<PassReport> run_pipeline(Graph& graph, const std::vector<Pass>& passes,
                                     const PassContext& context, const PipelineOptions& pipeline_options) {
  std::vector<std::string> names{kExpandKernels};
  for (const Pass& pass : passes) names.push_back(pass.name);
  for (const FusionPattern& pattern : context.target.patterns) names.push_back(name_of(pattern));
  for (const std::string& disabled : pipeline_options.disabled) {
    if (std::find(names.begin(), names.end(), disabled) != names.end()) continue;
    fail(ErrorCode::invalid_argument, "there is no pass '{}' to disable{}", disabled,
         did_you_mean(disabled, names));
  }
  PassContext enabled = context;
  std::erase_if(enabled.target.patterns, [&](const FusionPattern& pattern) {
    return pipeline_options.disabled.contains(name_of(pattern));
  });
  std::vector<PassReport> reports;
  for (const Pass& pass : passes) {
    if (!pipeline_options.disabled.contains(pass.name))
      reports.push_back(run_pass(graph, pass, enabled, pipeline_options));
  }
  return reports;
}

}  // namespace tessera
