// A head of many classes: its product with a bias, its loss, what was likeliest, and all gradients.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include <fmt/format.h>

#include "tessera/compile/executable.h"

#include "support/compare.h"
#include "support/random_tensor.h"

namespace tessera::testing {

struct HeadCase {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t classes = 0;

  std::unique_ptr<Graph> graph() const {
    return parse_graph(fmt::format(
        R"(graph head(input %x: bf16[{0}, {1}], input %w: bf16[{2}, {1}], input %b: bf16[{2}],
        input %labels: int32[{0}], input %dl: fp32[{0}]) {{
        %p = matmul(%x, %w) {{transpose_b = true}}
        %logits = add(%p, %b)
        %loss = cross_entropy(%logits, %labels) {{smoothing = 0.1}}
        %likeliest = argmax(%logits) {{axis = 1}}
        %d = cross_entropy_gradient(%logits, %labels, %dl) {{smoothing = 0.1}}
        %dx = matmul(%d, %w)
        %dw = matmul(%d, %x) {{transpose_a = true}}
        %wide = cast(%d) {{type = fp32}}
        %db = reduce_sum(%wide) {{axes = [0]}}
        output loss = %loss
        output likeliest = %likeliest
        output dx = %dx
        output dw = %dw
        output db = %db
      }})",
        rows, width, classes));
  }

  // Logits are within some 4.
  std::map<std::string, Tensor> inputs() const {
    return {{"x", random_tensor(DataType::bf16, {rows, width}, -1, 1, 1)},
            {"w", random_tensor(DataType::bf16, {classes, width}, -0.1, 0.1, 2)},
            {"b", random_tensor(DataType::bf16, {classes}, -1, 1, 3)},
            {"labels", random_tensor(DataType::int32, {rows}, 0, static_cast<double>(classes - 1), 4)},
            {"dl", random_tensor(DataType::fp32, {rows}, -1, 1, 5)}};
  }

  std::unique_ptr<Executable> compiled(const std::shared_ptr<Device>& device,
                                       const std::set<std::string>& disabled = {}) const {
    CompileOptions options;
    options.passes.precision = Precision::bf16;
    options.pipeline.disabled = disabled;
    return compile(*graph(), device, options);
  }

  std::map<std::string, Tensor> run(Executable& executable, const std::shared_ptr<Device>& device) const {
    executable.bind(std::make_shared<Variables>(device));
    return executable.run(inputs());
  }

  // Of products of other sizes, by kernels that may add up in another order: logits may be rounded to the
  // other side, by 2^-7 of the 2 to 4 that they are at most; a loss by twice that. Gradients sum terms that
  // differ by 2^-8 of themselves.
  void expect_same(const std::map<std::string, Tensor>& actual,
                   const std::map<std::string, Tensor>& expected) const {
    expect_close(actual.at("loss"), expected.at("loss"), {.absolute = 0.06}, "loss");
    expect_close(actual.at("dx"), expected.at("dx"), {.absolute = 2e-3, .relative = 0.02}, "dx");
    expect_close(actual.at("dw"), expected.at("dw"), {.absolute = 0.02, .relative = 0.02}, "dw");
    expect_close(actual.at("db"), expected.at("db"), {.absolute = 0.02, .relative = 0.02}, "db");
    int64_t others = 0;
    for (int64_t row = 0; row < rows; ++row)
      others += actual.at("likeliest").at(row) == expected.at("likeliest").at(row) ? 0 : 1;
    EXPECT_LT(others, rows / 50) << "only of logits that are nearly equal";
  }
};

}  // namespace tessera::testing
