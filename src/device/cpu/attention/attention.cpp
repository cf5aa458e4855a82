// Attention and its gradient as graphs of clusters and products, in which a hidden key has the weight 0, but
// for a few queries.
//
// 0 times NaN is NaN, and so is 0 times infinity: what is not finite in a key, a value or a gradient would
// reach queries that do not see it. So operands are looked through first, which costs one pass over what is
// read many times afterwards, and the reference takes those that are not finite.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "tessera/compile/reference_kernel.h"
#include "tessera/device/common/attention_rules.h"

#include "device/cpu/attention/few_query_attention.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

// `exponent`: the bits of the type's exponent, all of which are set in NaN and infinities.
template <typename Bits>
bool all_finite(const void* memory, int64_t count, Bits exponent) {
  const auto* values = static_cast<const Bits*>(memory);
  std::atomic<bool> finite = true;
  for_each_part(part_count(count), count, [&](int64_t, int64_t begin, int64_t end) {
    bool found = false;
    for (int64_t i = begin; i < end; ++i) found |= (values[i] & exponent) == exponent;
    if (found) finite = false;
  });
  return finite;
}

bool all_finite(DataType type, const void* memory, int64_t count) {
  switch (type) {
    case DataType::fp64:
      return all_finite<uint64_t>(memory, count, 0x7ff0000000000000U);
    case DataType::fp32:
      return all_finite<uint32_t>(memory, count, 0x7f800000U);
    case DataType::bf16:
      return all_finite<uint16_t>(memory, count, 0x7f80U);
    case DataType::fp16:
      return all_finite<uint16_t>(memory, count, 0x7c00U);
    default:
      return true;
  }
}

class CausalAttention : public Kernel {
 public:
  CausalAttention(const Node& node, std::unique_ptr<Kernel> finite, std::unique_ptr<Kernel> reference)
      : node_(node), finite_(std::move(finite)), reference_(std::move(reference)) {}

  int64_t workspace_bytes() const override {
    return std::max(finite_->workspace_bytes(), reference_->workspace_bytes());
  }
  // The reference packs nothing.
  std::vector<Packing> packings() const override { return finite_->packings(); }
  void pack(size_t index, const void* memory, void* packed) const override {
    finite_->pack(index, memory, packed);
  }
  void run(const KernelArguments& arguments) override {
    bool finite = true;
    for (size_t i = 0; i < node_.inputs().size() && finite; ++i) {
      const TensorType& type = node_.input(i)->type();
      finite = all_finite(type.data_type, arguments.inputs[i], type.element_count());
    }
    (finite ? finite_ : reference_)->run(arguments);
  }

 private:
  const Node& node_;
  std::unique_ptr<Kernel> finite_;
  std::unique_ptr<Kernel> reference_;
};

bool is_causal(const Node& node) {
  return node.attributes().boolean("causal");
}

std::vector<KernelCandidate> attention_candidates(const Node& node, const std::string& key,
                                                  const GraphRule& rule) {
  const KernelCandidate candidate = backend::rule_candidate("loops." + key, rule, cpu_candidates);
  if (!is_causal(node))
    return key == "attention" ? std::vector{few_query_candidate(), candidate} : std::vector{candidate};
  const auto create = [candidate](const KernelRequest& request) {
    return std::make_unique<CausalAttention>(request.node, candidate.create(request),
                                             reference_candidate().create(request));
  };
  return {backend::willing_candidate(candidate.name, create)};
}

GraphRule attention_expansion(const Node& node, const std::string& key, const GraphRule& rule) {
  const bool has_kernel = is_causal(node) || (key == "attention" && has_few_query_kernel(node));
  return has_kernel ? GraphRule() : rule;
}

bool register_rules() {
  for (const auto& [key, rule] : backend::attention_rules()) {
    CpuKernelRegistration(
        {.key = key,
         .candidates = [key = key,
                        rule = rule](const Node& node) { return attention_candidates(node, key, rule); },
         .expansion = [key = key,
                       rule = rule](const Node& node) { return attention_expansion(node, key, rule); }});
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_rules();

}  // namespace
}  // namespace tessera::cpu
