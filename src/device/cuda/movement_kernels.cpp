// Gathers, rows that are set, copies and what only writes.
#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/strided_move.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/moves.h"
#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/queue.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 256;

GeneratedProgram over_elements(const Node& node, const GpuTraits& gpu, const std::string& header,
                               const std::string& statement) {
  return simple_program(node, header, statement,
                        blocks_for(node.output()->type().element_count(), kThreads, gpu), kThreads);
}

// By whole accesses, as wide as rows are.
GeneratedProgram gather(const Node& node, const GpuTraits& gpu) {
  const DataType type = node.input(0)->data_type();
  const auto view =
      backend::view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  backend::refuse_unless(!is_packed(type), "there is no kernel that moves {}", to_string(type));
  const auto bytes = static_cast<int64_t>(size_of(type));
  const int64_t access = std::gcd(view.inner * bytes, kWidestAccess);
  const int64_t inner = view.inner * bytes / access;
  const int64_t rows = node.input(1)->type().element_count();
  const int64_t count = view.outer * rows * inner;
  GeneratedProgram program;
  program.source = "#include \"indexing.cuh\"\nusing namespace tessera;\n";
  program.source += entry_text("run", kThreads,
                               fmt::format("const {0}* table, const {1}* indices, {0}* y",
                                           unit_of_bytes(access), device_type(node.input(1)->data_type())),
                               fmt::format("  gather<{}>(table, indices, y, {}, {}, {}, {});\n",
                                           index_up_to(std::max(count, view.outer * view.extent * inner)),
                                           view.outer, view.extent, rows, inner));
  program.launches.push_back(
      {.entry = "run",
       .blocks = blocks_for(count, kThreads, gpu),
       .threads = kThreads,
       .arguments = {{Argument::Kind::input, 0}, {Argument::Kind::input, 1}, {Argument::Kind::output, 0}}});
  return program;
}

GeneratedProgram combine_rows(const Node& node, const GpuTraits& gpu) {
  const int64_t count = node.input(0)->type().element_count();
  return simple_program(node, "indexing.cuh",
                        fmt::format("combine_rows<{}>(x0, x1, y0, y1, {}, {});", kThreads, count,
                                    backend::view_along(node.input(1)->type().static_shape(), 0).inner),
                        blocks_for(count * kThreads, kThreads, gpu), kThreads);
}

// Over the table where the planner allows it; into a copy of it otherwise.
GeneratedProgram set_rows(const Node& node, const GpuTraits& gpu) {
  const std::string type = unit_type(node.input(0)->data_type());
  const std::string index = device_type(node.input(1)->data_type());
  const auto view = backend::view_along(node.output()->type().static_shape(), 0);
  const int64_t table = node.output()->type().element_count();
  const int64_t count = node.input(1)->type().element_count();
  GeneratedProgram program;
  program.source = "#include \"indexing.cuh\"\nusing namespace tessera;\n";
  program.source += entry_text("copy", kThreads, fmt::format("const {0}* table, {0}* y", type),
                               fmt::format("  copy_table(table, y, {});\n", table));
  program.source +=
      entry_text("set", kThreads, fmt::format("const {1}* indices, const {0}* rows, {0}* y", type, index),
                 fmt::format("  set_rows<{}>(indices, rows, y, {}, {}, {});\n", kThreads, count, view.extent,
                             view.inner));
  program.launches = {
      {.entry = "copy",
       .blocks = blocks_for(table, kThreads, gpu),
       .threads = kThreads,
       .arguments = {{Argument::Kind::input, 0}, {Argument::Kind::output, 0}},
       .copies = true},
      {.entry = "set",
       .blocks = blocks_for(count * kThreads, kThreads, gpu),
       .threads = kThreads,
       .arguments = {{Argument::Kind::input, 1}, {Argument::Kind::input, 2}, {Argument::Kind::output, 0}}}};
  program.may_overwrite = [](size_t, size_t input) { return input == 0; };
  return program;
}

GeneratedProgram one_hot(const Node& node, const GpuTraits& gpu) {
  return over_elements(node, gpu, "indexing.cuh",
                       fmt::format("one_hot(x0, y0, {}, {});", node.input(0)->type().element_count(),
                                   node.attributes().integer("depth")));
}

GeneratedProgram iota(const Node& node, const GpuTraits& gpu) {
  const auto view =
      backend::view_along(node.output()->type().static_shape(), node.attributes().integer("axis"));
  return over_elements(
      node, gpu, "indexing.cuh",
      fmt::format("iota(y0, {}, {}, {});", view.outer * view.extent * view.inner, view.extent, view.inner));
}

GeneratedProgram random_normal(const Node& node, const GpuTraits& gpu) {
  return over_elements(node, gpu, "random.cuh",
                       fmt::format("random_normal(x0, {}u, {}, y0);",
                                   static_cast<uint32_t>(node.attributes().integer("stream")),
                                   node.output()->type().element_count()));
}

// Holds the contents in device memory and copies them; also the copy of a reshape that is no alias.
class CopyKernel : public Kernel {
 public:
  CopyKernel(Context& context, int64_t bytes, const void* host) : context_(context), bytes_(bytes) {
    if (host == nullptr || !context.present()) return;
    contents_ = context.allocate(bytes);
    context.copy_from_host(contents_.get(), host, bytes);
  }
  void run(const KernelArguments& arguments) override {
    if (bytes_ == 0) return;
    context_.enter();
    const void* source = contents_ != nullptr ? contents_.get() : arguments.inputs[0];
    check(driver().cuMemcpyDtoDAsync_(address(arguments.outputs[0]), address(source),
                                      static_cast<size_t>(bytes_), stream_of(arguments.queue)),
          "copying");
  }

 private:
  Context& context_;
  int64_t bytes_;
  std::shared_ptr<void> contents_;
};

std::vector<KernelCandidate> copy_candidates(const Node&, Context& context) {
  return {backend::willing_candidate("cuda.copy", [&context](const KernelRequest& request) {
    const Node& node = request.node;
    if (node.schema().traits.view)
      return std::make_unique<CopyKernel>(context, node.output()->type().bytes(), nullptr);
    // What a constant or a count is, the reference says.
    const std::vector<Tensor> value = run_reference(node, {});
    return std::make_unique<CopyKernel>(context, node.output()->type().bytes(), value[0].raw());
  })};
}

const GeneratedRegistration kGather("gather", gather);
const GeneratedRegistration kCombineRows("combine_rows", combine_rows);
const GeneratedRegistration kSetRows("set_rows", set_rows);
const GeneratedRegistration kOneHot("one_hot", one_hot);
const GeneratedRegistration kIota("iota", iota);
const GeneratedRegistration kRandomNormal("random_normal", random_normal);
const CudaKernelRegistration kReshape({.key = "reshape", .candidates = copy_candidates});
const CudaKernelRegistration kConstant({.key = "constant", .candidates = copy_candidates});
const CudaKernelRegistration kCount({.key = "count_elements", .candidates = copy_candidates});

}  // namespace
}  // namespace tessera::cuda
