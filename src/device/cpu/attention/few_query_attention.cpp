#include "device/cpu/attention/few_query_attention.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention/few_query_attention.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tessera/device/common/attention_patterns.h"
#include "tessera/device/common/refusal.h"

#include "device/cpu/loops/row_loops.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"
#include "device/cpu/runtime/vector_memory-inl.h"

#ifndef TESSERA_FEW_QUERY_HEAD
#define TESSERA_FEW_QUERY_HEAD
namespace tessera::cpu {

// One head of one of the batch. q: [queries, width], k: [seen, width], v: [seen, value width].
struct FewQueryHead {
  DataType type = DataType::fp32;
  int64_t queries = 0, seen = 0, width = 0, value_width = 0;
  float scale = 1;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* y = nullptr;
  float* log_sum = nullptr;  // [queries]
  float* scaled = nullptr;   // scratch: [queries, width]
  float* scores = nullptr;   // scratch: [queries, seen]
};

}  // namespace tessera::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <typename T>
float dot(const float* a, const T* b, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= count; c += lanes) sums = hn::MulAdd(hn::LoadU(d, a + c), load_floats(d, b + c), sums);
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; c < count; ++c) sum += a[c] * static_cast<float>(b[c]);
  return sum;
}

template <typename T>
void write_scores(const FewQueryHead& head) {
  const T* q = static_cast<const T*>(head.q);
  const T* k = static_cast<const T*>(head.k);
  for_each_vector(head.queries * head.width, [&](auto d, int64_t c) HWY_ATTR {
    hn::StoreU(hn::Mul(load_floats(d, q + c), hn::Set(d, head.scale)), d, head.scaled + c);
  });
  for (int64_t key = 0; key < head.seen; ++key) {
    for (int64_t query = 0; query < head.queries; ++query)
      head.scores[query * head.seen + key] =
          dot(head.scaled + query * head.width, k + key * head.width, head.width);
  }
}

// y = the sum of weights[key] * v[key], divided by `sum`, of some columns from the first on: so many vectors
// at a time, whose sums need not wait for each other.
template <int kVectors, typename T, class D>
void add_columns(D d, const FewQueryHead& head, const float* weights, double sum, const T* v, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kVectors];
  for (auto& part : sums) part = hn::Zero(d);
  for (int64_t key = 0; key < head.seen; ++key) {
    const auto weight = hn::Set(d, weights[key]);
    for (int n = 0; n < kVectors; ++n)
      sums[n] = hn::MulAdd(weight, load_floats(d, v + key * head.value_width + n * lanes), sums[n]);
  }
  const auto by = hn::Set(d, static_cast<float>(sum));
  for (int n = 0; n < kVectors; ++n) store_floats(hn::Div(sums[n], by), d, y + n * lanes);
}

template <typename T>
void write_result(const FewQueryHead& head, const float* weights, double sum, T* y) {
  constexpr int kVectors = 4;
  const hn::ScalableTag<float> d;
  const auto step = kVectors * static_cast<int64_t>(hn::Lanes(d));
  const T* v = static_cast<const T*>(head.v);
  int64_t begin = 0;
  for (; begin + step <= head.value_width; begin += step)
    add_columns<kVectors>(d, head, weights, sum, v + begin, y + begin);
  for_each_vector(head.value_width - begin, [&](auto tag, int64_t c) HWY_ATTR {
    add_columns<1>(tag, head, weights, sum, v + begin + c, y + begin + c);
  });
}

void few_query_head(const FewQueryHead& head) {
  with_element_type(head.type, [&]<typename T>() {
    write_scores<T>(head);
    const RowLoops<float>& loops = row_loops(float());
    for (int64_t query = 0; query < head.queries; ++query) {
      float* row = head.scores + query * head.seen;
      const float largest = loops.maximum(row, head.seen);
      const double sum = loops.exponentials(row, largest, row, head.seen);
      write_result<T>(head, row, sum, static_cast<T*>(head.y) + query * head.value_width);
      head.log_sum[query] = static_cast<float>(static_cast<double>(largest) + std::log(sum));
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {
namespace {

using backend::refuse_unless;

HWY_EXPORT(few_query_head);

struct FewQueryProblem {
  explicit FewQueryProblem(const Node& attention)
      : type(attention.input(0)->data_type()), scale(attention.attributes().real("scale")) {
    const Shape q = attention.input(0)->type().static_shape();
    const Shape v = attention.input(2)->type().static_shape();
    batch = q[0];
    heads = q[1];
    key_heads = v[1];
    queries = q[2];
    keys = v[2];
    width = q[3];
    value_width = v[3];
  }

  DataType type;
  double scale;
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
};

FewQueryProblem read(const Node& attention) {
  constexpr int64_t kMostQueries = 8;  // more are a product's
  refuse_unless(!attention.attributes().boolean("causal"), "queries that see keys in order");
  refuse_unless(backend::key_lengths_of_attention(attention) != nullptr, "keys that are all seen");
  refuse_unless(backend::bias_of_attention(attention) == nullptr, "a bias");
  const Value* log_sum = attention.output(1);
  refuse_unless(log_sum->uses().empty() && !log_sum->is_output_or_update(),
                "a gradient, whose scores are a product's");
  const FewQueryProblem problem(attention);
  refuse_unless(problem.type == DataType::fp32 || is_half(problem.type), "operands of {}",
                to_string(problem.type));
  refuse_unless(problem.queries <= kMostQueries, "{} queries, where up to {} are taken", problem.queries,
                kMostQueries);
  refuse_unless(problem.batch * problem.heads * problem.queries * problem.keys > 0,
                "a tensor without elements");
  return problem;
}

class FewQueryAttention : public Kernel {
 public:
  explicit FewQueryAttention(const FewQueryProblem& problem)
      : problem_(problem), threads_(threads_of(problem.batch * problem.keys)) {
    scaled_ = workspace_.own.book<float>(problem.queries * problem.width);
    scores_ = workspace_.own.book<float>(problem.queries * problem.keys);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(threads_); }

  void run(const KernelArguments& arguments) override {
    const auto* lengths = static_cast<const int32_t*>(arguments.inputs[3]);
    const auto seen = [&](int64_t row) { return std::clamp<int64_t>(lengths[row], 1, problem_.keys); };
    int64_t keys = 0;
    for (int64_t row = 0; row < problem_.batch; ++row) keys += seen(row);
    for_each_block(std::min(threads_, threads_of(keys)), problem_.batch * problem_.heads, Order::forwards,
                   [&](int64_t thread, int64_t head) {
                     HWY_DYNAMIC_DISPATCH(few_query_head)
                     (head_of(arguments, thread, head, seen(head / problem_.heads)));
                   });
  }

 private:
  // `keys`: of a head in all of the batch.
  int64_t threads_of(int64_t keys) const {
    const int64_t heads = problem_.batch * problem_.heads;
    return std::min(part_count(keys * problem_.heads * (problem_.width + problem_.value_width)), heads);
  }

  FewQueryHead head_of(const KernelArguments& arguments, int64_t thread, int64_t head, int64_t seen) const {
    void* own = workspace_.own_of(arguments.workspace, thread);
    const auto bytes = static_cast<int64_t>(size_of(problem_.type));
    // Neighboring heads of queries share one of keys, in all of the batch alike.
    const int64_t key_head = head / (problem_.heads / problem_.key_heads);
    const auto begin = [&](const void* memory, int64_t number, int64_t rows, int64_t width) {
      return static_cast<const std::byte*>(memory) + number * rows * width * bytes;
    };
    return {.type = problem_.type,
            .queries = problem_.queries,
            .seen = seen,
            .width = problem_.width,
            .value_width = problem_.value_width,
            .scale = static_cast<float>(problem_.scale),
            .q = begin(arguments.inputs[0], head, problem_.queries, problem_.width),
            .k = begin(arguments.inputs[1], key_head, problem_.keys, problem_.width),
            .v = begin(arguments.inputs[2], key_head, problem_.keys, problem_.value_width),
            .y = static_cast<std::byte*>(arguments.outputs[0]) +
                 head * problem_.queries * problem_.value_width * bytes,
            .log_sum = static_cast<float*>(arguments.outputs[1]) + head * problem_.queries,
            .scaled = scaled_.in(own),
            .scores = scores_.in(own)};
  }

  FewQueryProblem problem_;
  int64_t threads_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> scaled_;
  backend::WorkspaceArray<float> scores_;
};

}  // namespace

KernelCandidate few_query_candidate() {
  return backend::candidate_of<FewQueryAttention>(
      "loops.few_query_attention", [](const KernelRequest& request) { return read(request.node); });
}

bool has_few_query_kernel(const Node& attention) {
  return backend::unless_refused([&] { return read(attention); }).has_value();
}

}  // namespace tessera::cpu
#endif
