#include "device/cuda/cudnn/cudnn_attention_graph.h"

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/tensor.h"

#include "device/cuda/cudnn/cudnn_frontend_graph.h"

namespace tessera::cuda {
namespace {

// The problem in cuDNN's terms.
class AttentionGraph {
 public:
  AttentionGraph(CudnnGraph& graph, const AttentionProblem& problem) : graph_(graph), problem_(problem) {}

  void describe() {
    graph_.set_type(problem_.type);
    if (problem_.gradient) {
      gradient();
    } else {
      forward();
    }
  }

 private:
  using Tensor = fe::graph::Tensor_attributes;
  using Operand = AttentionOperand;

  // The number of an operand, its extents, and where it lies.
  Tensor& set(Tensor& tensor, Operand operand, const Shape& shape) const {
    const auto own = problem_.strides.find(operand);
    return tensor.set_uid(static_cast<int64_t>(operand))
        .set_dim(shape)
        .set_stride(own == problem_.strides.end() ? row_major_strides(shape) : own->second);
  }

  Shape of_queries(int64_t width) const { return {problem_.batch, problem_.heads, problem_.queries, width}; }
  Shape of_keys(int64_t width) const { return {problem_.batch, problem_.key_heads, problem_.keys, width}; }
  Shape q() const { return of_queries(problem_.width); }
  Shape k() const { return of_keys(problem_.width); }
  Shape v() const { return of_keys(problem_.value_width); }
  Shape y() const { return of_queries(problem_.value_width); }
  Shape log_sum() const { return of_queries(1); }
  Shape bias() const { return {problem_.bias->batch, problem_.bias->heads, problem_.queries, problem_.keys}; }

  GraphTensor input(Operand operand, const Shape& shape) {
    Tensor tensor;
    return graph_.tensor(set(tensor, operand, shape));
  }
  GraphTensor lengths(Operand operand) {
    const GraphTensor tensor = input(operand, {problem_.batch, 1, 1, 1});
    tensor->set_data_type(fe::DataType_t::INT32);
    return tensor;
  }
  Tensor& output(const GraphTensor& tensor, Operand operand, const Shape& shape) const {
    return set(tensor->set_output(true), operand, shape);
  }

  template <typename Attributes>
  void set_scores(Attributes& attributes) {
    attributes.set_attn_scale(static_cast<float>(problem_.scale));
    if (problem_.causal) {
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    }
    if (problem_.bias.has_value()) attributes.set_bias(input(Operand::bias, bias()));
    // cuDNN wants both lengths, and makes zeros of the queries after theirs: all are within it.
    if (problem_.key_lengths) {
      attributes.set_padding_mask(true)
          .set_seq_len_kv(lengths(Operand::key_lengths))
          .set_seq_len_q(lengths(Operand::query_lengths));
    }
  }

  void forward() {
    // The implementation that every version has, of separate operations.
    auto attributes = fe::graph::SDPA_attributes()
                          .set_name("attention")
                          .set_generate_stats(true)
                          .set_implementation(fe::AttentionImplementation_t::COMPOSITE);
    set_scores(attributes);
    auto [result, statistics] = graph_.sdpa(input(Operand::q, q()), input(Operand::k, k()),
                                            input(Operand::v, v()), std::move(attributes));
    output(result, Operand::y, y());
    output(statistics, Operand::log_sum, log_sum()).set_data_type(fe::DataType_t::FLOAT);
  }

  void gradient() {
    auto attributes = fe::graph::SDPA_backward_attributes()
                          .set_name("attention_gradient")
                          .set_deterministic_algorithm(problem_.deterministic);
    set_scores(attributes);
    if (problem_.bias_gradient) {
      Tensor dbias;
      set(dbias, Operand::dbias, bias()).set_output(true);
      attributes.set_dbias(graph_.tensor(dbias));
    }
    const GraphTensor statistics = input(Operand::log_sum, log_sum());
    statistics->set_data_type(fe::DataType_t::FLOAT);
    auto [dq, dk, dv] = graph_.sdpa_backward(input(Operand::q, q()), input(Operand::k, k()),
                                             input(Operand::v, v()), input(Operand::y, y()),
                                             input(Operand::dy, y()), statistics, std::move(attributes));
    output(dq, Operand::dq, q());
    output(dk, Operand::dk, k());
    output(dv, Operand::dv, v());
  }

  CudnnGraph& graph_;
  const AttentionProblem& problem_;
};

}  // namespace

std::string AttentionProblem::key() const {
  std::string result =
      fmt::format("attention{} {} {} {} {} {} {} {} {:a} {}{}", gradient ? " gradient" : "", to_string(type),
                  batch, heads, queries, keys, width, value_width, scale, causal, deterministic);
  if (key_heads != heads) result += fmt::format(" {} key heads", key_heads);
  if (bias.has_value())
    result +=
        fmt::format(" bias {} {}{}", bias->batch, bias->heads, bias_gradient ? " with its gradient" : "");
  if (key_lengths) result += " key lengths";
  for (const auto& [operand, own] : strides)
    result += fmt::format(" {} in {}", static_cast<int64_t>(operand), fmt::join(own, " "));
  return result;
}

PlanProblem AttentionProblem::plan_problem() const {
  // The weights are rounded to the operands' type for the second product, which some versions may call narrow
  // sums; the sums are fp32.
  std::vector<PlanProblem::Filled> filled;
  if (key_lengths) {
    filled.push_back({.number = static_cast<int64_t>(AttentionOperand::query_lengths),
                      .words = batch,
                      .value = static_cast<uint32_t>(queries)});
  }
  return {.key = key(),
          .without_varying_sums = deterministic,
          .without_narrow_sums = false,
          .filled = filled,
          .describe = [problem = *this](CudnnGraph& graph) { AttentionGraph(graph, problem).describe(); }};
}

}  // namespace tessera::cuda
