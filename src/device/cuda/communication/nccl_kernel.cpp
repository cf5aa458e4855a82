#include "device/cuda/communication/nccl_kernel.h"

#include <optional>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

#include "device/cuda/communication/nccl_group.h"
#include "device/cuda/runtime/queue.h"

namespace tessera::cuda {
namespace {

std::optional<ncclDataType_t> nccl_type(DataType type) {
  switch (type) {
    case DataType::fp32:
      return ncclFloat32;
    case DataType::fp64:
      return ncclFloat64;
    case DataType::fp16:
      return ncclFloat16;
    case DataType::bf16:
      return ncclBfloat16;
    case DataType::int8:
      return ncclInt8;
    case DataType::uint8:
      return ncclUint8;
    case DataType::int32:
      return ncclInt32;
    case DataType::uint32:
      return ncclUint32;
    case DataType::int64:
      return ncclInt64;
    case DataType::uint64:
      return ncclUint64;
    default:
      return std::nullopt;
  }
}

Reduction reduction_of(const Node& node) {
  return node.operator_name() == "reduce" ? Reduction::sum
                                          : parse_reduction(node.attributes().text("reduction"));
}

ncclRedOp_t operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return ncclSum;
    case Reduction::mean:
      return ncclAvg;
    case Reduction::maximum:
      return ncclMax;
    case Reduction::minimum:
      return ncclMin;
  }
  return ncclSum;
}

size_t bytes_of(const Value& value) {
  return static_cast<size_t>(value.type().bytes());
}

size_t elements_of(const Value& value) {
  return static_cast<size_t>(value.type().element_count());
}

class NcclKernel : public Kernel {
 public:
  NcclKernel(const Node& node, std::shared_ptr<NcclGroup> group) : node_(node), group_(std::move(group)) {}

  bool may_overwrite(size_t output, size_t input) const override {
    return node_.schema().traits.in_place && output == input;
  }

  void run(const KernelArguments& arguments) override {
    static_cast<CudaQueue&>(arguments.queue).context().enter();
    if (node_.schema().operand(0).variadic) return run_parts(arguments);
    if (node_.output()->type().element_count() == 0) return;
    const void* x = arguments.inputs[0];
    void* y = arguments.outputs[0];
    const CUstream stream = stream_of(arguments.queue);
    ncclComm_t group = group_->handle();
    const std::string& name = node_.operator_name();
    if (name == "broadcast") {
      group_->check(nccl().ncclBroadcast_(x, y, bytes_of(*node_.output()), ncclUint8, root(), group, stream),
                    name);
    } else {
      group_->check(
          nccl().ncclReduce_(x, y, elements_of(*node_.output()), type(0), ncclSum, root(), group, stream),
          name);
      if (group_->rank() != root()) arguments.queue.fill(y, 0, node_.output()->type().bytes());
    }
  }

 private:
  ncclDataType_t type(size_t i) const { return *nccl_type(node_.input(i)->data_type()); }
  ncclRedOp_t operation() const { return operation_of(reduction_of(node_)); }
  int root() const { return static_cast<int>(node_.attributes().integer("root")); }

  // All parts in one kernel.
  void run_parts(const KernelArguments& arguments) {
    group_->check(nccl().ncclGroupStart_(), "beginning a group of collectives");
    ncclResult_t status = ncclSuccess;
    for (size_t i = 0; i < arguments.inputs.size() && status == ncclSuccess; ++i) {
      if (elements_of(*node_.input(i)) > 0)
        status = run_part(i, arguments.inputs[i], arguments.outputs[i], stream_of(arguments.queue));
    }
    const ncclResult_t ended = nccl().ncclGroupEnd_();
    group_->check(status == ncclSuccess ? ended : status, node_.operator_name());
  }

  ncclResult_t run_part(size_t i, const void* x, void* y, CUstream stream) {
    ncclComm_t group = group_->handle();
    const std::string& name = node_.operator_name();
    if (name == "all_gather")
      return nccl().ncclAllGather_(x, y, bytes_of(*node_.input(i)), ncclUint8, group, stream);
    if (name == "reduce_scatter")
      return nccl().ncclReduceScatter_(x, y, elements_of(*node_.output(i)), type(i), operation(), group,
                                       stream);
    return nccl().ncclAllReduce_(x, y, elements_of(*node_.input(i)), type(i), operation(), group, stream);
  }

  const Node& node_;
  const std::shared_ptr<NcclGroup> group_;  // null on a card that is only planned for
};

}  // namespace

std::string nccl_refusal(const Node& node) {
  if (node.schema().traits.moves_only) return "";
  const Reduction reduction = reduction_of(node);
  const bool is_extremum = reduction == Reduction::maximum || reduction == Reduction::minimum;
  for (const Value* input : node.inputs()) {
    const DataType type = input->data_type();
    if (!nccl_type(type).has_value()) return fmt::format("NCCL adds up no {}", to_string(type));
    if (is_extremum && is_floating(type)) return fmt::format("NCCL's {} loses a NaN", to_string(reduction));
  }
  return "";
}

KernelCandidate nccl_candidate(const NcclGroups& groups) {
  return {.name = "nccl",
          .plan = [&groups](const KernelRequest& request) -> std::variant<Refusal, KernelMaker> {
            const Node& node = request.node;
            if (node.attributes().integer("ranks") == 1) return Refusal{"there is no other rank"};
            const Communicator* const members = request.communicator.get();
            if (std::string refusal = groups.refusal(node, members); !refusal.empty())
              return Refusal{std::move(refusal)};
            return KernelMaker(
                [&node, group = groups.find(members)] { return std::make_unique<NcclKernel>(node, group); });
          }};
}

}  // namespace tessera::cuda
