#include "tessera/device/common/cross_entropy_pattern.h"

#include <string>
#include <vector>

#include "passes/pass_case.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

const std::string kInputs =
    "graph g(input %x: fp32[6, 5], input %labels: int32[6], input %dl: fp32[6], input %others: int32[6]) {";

void expect_fusion(const std::string& before, const std::string& after,
                   const std::vector<FusionPattern>& patterns = {backend::cross_entropy_pattern()}) {
  expect_rewrite("fuse_patterns", (kInputs + before + "}").c_str(), (kInputs + after + "}").c_str(), 0,
                 brings(patterns));
}
void expect_none(const std::string& text) {
  expect_untouched("fuse_patterns", (kInputs + text + "}").c_str(),
                   brings({backend::cross_entropy_pattern()}));
}

TEST(CrossEntropyPattern, TakesTheLossAndWhatIsLikeliest) {
  expect_fusion(R"(
    %loss = cross_entropy(%x, %labels) {smoothing = 0.1}
    %best = argmax(%x) {axis = 1}
    %d = cross_entropy_gradient(%x, %labels, %dl) {smoothing = 0.1}
    output loss = %loss
    output best = %best
    output d = %d
  )",
                R"(
    %loss, %best, %d = fused(%x, %labels, %dl) {kind = "cross_entropy", role_values = [0, 1, 2, 5, 3, 4], roles = ["logits", "labels", "loss_gradient", "logits_gradient", "loss", "likeliest"]} body graph cross_entropy(
      input %x: fp32[6, 5], input %labels: int32[6], input %dl: fp32[6]) {
      %loss = cross_entropy(%x, %labels) {smoothing = 0.1}
      %best = argmax(%x) {axis = 1}
      %d = cross_entropy_gradient(%x, %labels, %dl) {smoothing = 0.1}
      output y0 = %loss
      output y1 = %best
      output y2 = %d
    }
    output loss = %loss
    output best = %best
    output d = %d
  )");
}

// Of more columns than there are classes.
TEST(CrossEntropyPattern, SearchesAmongTheClasses) {
  expect_fusion(R"(
    %cut = slice(%x) {limits = [6, 4], starts = [0, 0], strides = [1, 1]}
    %best = argmax(%cut) {axis = -1, keep_dimensions = true}
    %d = cross_entropy_gradient(%x, %labels, %dl) {classes = 4}
    output best = %best
    output d = %d
  )",
                R"(
    %best, %d = fused(%x, %labels, %dl) {kind = "cross_entropy", role_values = [0, 1, 2, 5, 4], roles = ["logits", "labels", "loss_gradient", "logits_gradient", "likeliest"]} body graph cross_entropy(
      input %x: fp32[6, 5], input %labels: int32[6], input %dl: fp32[6]) {
      %cut = slice(%x) {limits = [6, 4], starts = [0, 0], strides = [1, 1]}
      %best = argmax(%cut) {axis = -1, keep_dimensions = true}
      %d = cross_entropy_gradient(%x, %labels, %dl) {classes = 4}
      output y0 = %best
      output y1 = %d
    }
    output best = %best
    output d = %d
  )");
}

// Whose labels or options are others', a search along the rows, among other columns or of a part of the rows.
TEST(CrossEntropyPattern, LeavesWhatIsNotOfTheSameRows) {
  const std::string gradient = "%d = cross_entropy_gradient(%x, %labels, %dl) {classes = 4} output d = %d ";
  const auto beside = [&](const std::string& text) { expect_none(text + gradient + "output y = %y "); };
  beside("%y = cross_entropy(%x, %others) {classes = 4} ");
  beside("%y = cross_entropy(%x, %labels) ");
  beside("%y = cross_entropy(%x, %labels) {classes = 4, smoothing = 0.1} ");
  beside("%y = argmax(%x) {axis = 1} ");
  beside("%y = argmax(%x) {axis = 0} ");
  beside(
      "%cut = slice(%x) {limits = [6, 3], starts = [0, 0], strides = [1, 1]} %y = argmax(%cut) {axis = 1} ");
  beside(
      "%cut = slice(%x) {limits = [6, 5], starts = [0, 1], strides = [1, 1]} %y = argmax(%cut) {axis = 1} ");
  beside(
      "%cut = slice(%x) {limits = [5, 4], starts = [0, 0], strides = [1, 1]} %y = argmax(%cut) {axis = 1} ");
  beside(
      "%cut = slice(%x) {limits = [6, 4], starts = [0, 0], strides = [1, 1]} %b = argmax(%cut) {axis = 1} "
      "output cut = %cut %y = cast(%b) {type = fp32} ");
  expect_none(
      "%y = cross_entropy(%x, %labels) output y = %y %best = argmax(%x) {axis = 1} output b = %best ");
  expect_none(gradient);
}

TEST(CrossEntropyPattern, TakesTheLossWithWhatIsLikeliestInEvaluation) {
  const std::string outputs = "output loss = %loss output best = %best";
  expect_fusion("%loss = cross_entropy(%x, %labels) %best = argmax(%x) {axis = 1} " + outputs,
                R"(
    %loss, %best = fused(%x, %labels) {kind = "cross_entropy", role_values = [0, 1, 2, 3], roles = ["logits", "labels", "loss", "likeliest"]} body graph cross_entropy(
      input %x: fp32[6, 5], input %labels: int32[6]) {
      %loss = cross_entropy(%x, %labels)
      %best = argmax(%x) {axis = 1}
      output y0 = %loss
      output y1 = %best
    })" + outputs,
                {backend::cross_entropy_pattern(), backend::evaluated_cross_entropy_pattern()});
}

// As where one loss weighs another.
TEST(CrossEntropyPattern, LeavesWhatItsGradientDependsOn) {
  expect_none(R"(
    %loss = cross_entropy(%x, %labels)
    %weighted = multiply(%loss, %dl)
    %d = cross_entropy_gradient(%x, %labels, %weighted)
    output loss = %loss
    output d = %d
  )");
  expect_fusion(R"(
    %best = argmax(%x) {axis = 1}
    %wide = cast(%best) {type = fp32}
    %weighted = multiply(%wide, %dl)
    %loss = cross_entropy(%x, %labels)
    %d = cross_entropy_gradient(%x, %labels, %weighted)
    output loss = %loss
    output d = %d
  )",
                R"(
    %best = argmax(%x) {axis = 1}
    %wide = cast(%best) {type = fp32}
    %weighted = multiply(%wide, %dl)
    %loss, %d = fused(%x, %labels, %weighted) {kind = "cross_entropy", role_values = [0, 1, 2, 4, 3], roles = ["logits", "labels", "loss_gradient", "logits_gradient", "loss"]} body graph cross_entropy(
      input %x: fp32[6, 5], input %labels: int32[6], input %weighted: fp32[6]) {
      %loss = cross_entropy(%x, %labels)
      %d = cross_entropy_gradient(%x, %labels, %weighted)
      output y0 = %loss
      output y1 = %d
    }
    output loss = %loss
    output d = %d
  )");
}

}  // namespace
}  // namespace tessera::testing
