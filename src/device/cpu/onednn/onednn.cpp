#include "device/cpu/onednn/onednn.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tessera/device/common/workspace_layout.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/onednn_status.h"

namespace tessera::cpu {
namespace {

using backend::WorkspaceArray;
using dnnl::memory;

std::string joined(const memory::dims& numbers) {
  return fmt::format("{}", fmt::join(numbers, "x"));
}

// All that says where the elements lie; "" for layouts of which oneDNN does not tell it, and for whole
// numbers, to which it may add sums.
std::string describe(const memory::desc& descriptor) {
  const memory::data_type type = descriptor.get_data_type();
  const bool floating =
      type == memory::data_type::f32 || type == memory::data_type::f16 || type == memory::data_type::bf16;
  if (!floating || descriptor.get_format_kind() != memory::format_kind::blocked) return "";
  return fmt::format("type {} {} of {} strides {} blocks {} of axes {} offset {}", static_cast<int>(type),
                     joined(descriptor.get_dims()), joined(descriptor.get_padded_dims()),
                     joined(descriptor.get_strides()), joined(descriptor.get_inner_blks()),
                     joined(descriptor.get_inner_idxs()), descriptor.get_submemory_offset());
}

std::string describe_reorder(const memory::desc& from, const memory::desc& to) {
  const std::string source = describe(from);
  const std::string target = describe(to);
  return source.empty() || target.empty() ? "" : fmt::format("onednn {} -> {}", source, target);
}

// Runs one primitive. Operands whose layouts differ are reordered: frozen inputs once, as packings, the
// others at every run, through the workspace.
class OnednnKernel : public Kernel {
 public:
  OnednnKernel(const OnednnPlan& plan, const KernelRequest& request) : primitive_(plan.descriptor) {
    for (const OnednnOperand& operand : plan.operands) {
      const bool frozen = !operand.is_output && is_frozen_input(request, operand.index);
      operands_.push_back(make_operand(operand, frozen));
    }
    scratchpad_ = memory(plan.descriptor.scratchpad_desc(), onednn_engine(), nullptr);
    scratchpad_place_ = book(scratchpad_.get_desc());
    arguments_[DNNL_ARG_SCRATCHPAD] = scratchpad_;
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  std::vector<Packing> packings() const override {
    std::vector<Packing> result;
    for (const Operand& operand : operands_) {
      if (!operand.packing.has_value()) continue;
      const memory::desc wanted = operand.used.get_desc();
      result.push_back({operand.index, describe_reorder(operand.stored.get_desc(), wanted),
                        static_cast<int64_t>(wanted.get_size())});
    }
    return result;
  }

  void pack(size_t index, const void* source, void* packed) const override {
    const auto operand = std::find_if(operands_.begin(), operands_.end(),
                                      [&](const Operand& one) { return one.packing == index; });
    calling_onednn([&] {
      const memory from(operand->stored.get_desc(), onednn_engine(), const_cast<void*>(source));
      memory to(operand->used.get_desc(), onednn_engine(), packed);
      dnnl::reorder(from, to).execute(onednn_stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
      onednn_stream().wait();
    });
  }

  void run(const KernelArguments& arguments) override {
    calling_onednn([&] { run_primitive(arguments); });
  }

 private:
  struct Operand {
    bool is_output = false;
    size_t index = 0;
    std::optional<size_t> packing;  // its place in packings()
    dnnl::reorder reorder;          // of each run; empty when there is none
    memory stored;
    memory used;
    WorkspaceArray<std::byte> place;  // of `used`
    memory scratchpad;
    WorkspaceArray<std::byte> scratchpad_place;

    void execute_reorder(void* workspace) {
      scratchpad.set_data_handle(scratchpad_place.in(workspace));
      reorder.execute(onednn_stream(), {{DNNL_ARG_FROM, is_output ? used : stored},
                                        {DNNL_ARG_TO, is_output ? stored : used},
                                        {DNNL_ARG_SCRATCHPAD, scratchpad}});
    }
  };

  void run_primitive(const KernelArguments& arguments) {
    void* workspace = arguments.workspace;
    scratchpad_.set_data_handle(scratchpad_place_.in(workspace));
    for (Operand& operand : operands_) {
      void* pointer = operand.is_output ? arguments.outputs[operand.index]
                                        : const_cast<void*>(arguments.inputs[operand.index]);
      if (operand.packing.has_value()) {
        operand.used.set_data_handle(const_cast<void*>(arguments.packed[*operand.packing]));
      } else if (operand.reorder) {
        operand.stored.set_data_handle(pointer);
        operand.used.set_data_handle(operand.place.in(workspace));
        if (!operand.is_output) operand.execute_reorder(workspace);
      } else {
        operand.used.set_data_handle(pointer);
      }
    }
    primitive_.execute(onednn_stream(), arguments_);
    for (Operand& operand : operands_) {
      if (operand.is_output && operand.reorder) operand.execute_reorder(workspace);
    }
    onednn_stream().wait();
  }

  Operand make_operand(const OnednnOperand& plan, bool frozen) {
    Operand operand;
    operand.is_output = plan.is_output;
    operand.index = plan.index;
    operand.stored = memory(plan.stored, onednn_engine(), nullptr);
    if (plan.stored == plan.wanted) {
      operand.used = operand.stored;
    } else if (frozen) {
      operand.packing = packing_count_++;
      operand.used = memory(plan.wanted, onednn_engine(), nullptr);
    } else {
      operand.used = memory(plan.wanted, onednn_engine(), nullptr);
      const auto& from = plan.is_output ? plan.wanted : plan.stored;
      const auto& to = plan.is_output ? plan.stored : plan.wanted;
      const dnnl::reorder::primitive_desc descriptor(onednn_engine(), from, onednn_engine(), to,
                                                     default_attributes());
      operand.reorder = dnnl::reorder(descriptor);
      operand.place = book(plan.wanted);
      operand.scratchpad = memory(descriptor.scratchpad_desc(), onednn_engine(), nullptr);
      operand.scratchpad_place = book(descriptor.scratchpad_desc());
    }
    arguments_[plan.argument] = operand.used;
    return operand;
  }

  WorkspaceArray<std::byte> book(const memory::desc& descriptor) {
    return workspace_.book<std::byte>(static_cast<int64_t>(descriptor.get_size()));
  }

  dnnl::primitive primitive_;
  std::vector<Operand> operands_;
  size_t packing_count_ = 0;
  memory scratchpad_;
  WorkspaceArray<std::byte> scratchpad_place_;
  backend::WorkspaceLayout workspace_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

memory::data_type onednn_type(DataType type) {
  switch (type) {
    case DataType::fp32:
      return memory::data_type::f32;
    case DataType::fp16:
      return memory::data_type::f16;
    case DataType::bf16:
      return memory::data_type::bf16;
    case DataType::int8:
      return memory::data_type::s8;
    case DataType::uint8:
      return memory::data_type::u8;
    case DataType::int32:
      return memory::data_type::s32;
    default:
      backend::refuse("oneDNN has no type {}", to_string(type));
  }
}

memory::data_type compute_type(DataType type) {
  const auto computes = [](memory::data_type candidate) {
    const memory::desc square = dense({16, 16}, candidate);
    const auto described = backend::unless_refused([&] {
      return describing_to_onednn(
          [&] { return dnnl::matmul::primitive_desc(onednn_engine(), square, square, square); });
    });
    return described.has_value();
  };
  static const bool half = computes(memory::data_type::f16);
  static const bool brain = computes(memory::data_type::bf16);
  const memory::data_type own = onednn_type(type);
  const bool missing = (type == DataType::fp16 && !half) || (type == DataType::bf16 && !brain);
  return missing ? memory::data_type::f32 : own;
}

// oneDNN takes signed weights alone; without an instruction for such sums it saturates them in 16 bits; and
// of two signed factors it moves the first by 128, which version 3.2 takes back in fp32. It adds a bias in
// fp32 too, which is why no pattern fuses one.
void refuse_inexact_sums(DataType a, DataType b, int64_t depth) {
  refuse_unless(b == DataType::int8, "unsigned weights");
  constexpr auto kVnni = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_vnni);
  refuse_unless((static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kVnni) == kVnni,
                "whole numbers on a processor without instructions for their sums");
  const int64_t bound = depth * 255 * 128;
  refuse_unless(bound < int64_t{1} << 31, "sums of {} whole numbers that may reach 2^31", depth);
  refuse_unless(a != DataType::int8 || bound < int64_t{1} << 24,
                "oneDNN 3.2 rounds sums of two signed factors that may reach 2^24, here of {}", depth);
}

memory::desc dense(const memory::dims& dims, memory::data_type type) {
  memory::dims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strided(dims, type, strides);
}

memory::desc strided(const memory::dims& dims, memory::data_type type, const memory::dims& strides) {
  return {dims, type, strides};
}

memory::desc any_layout(const memory::dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::any};
}

dnnl::primitive_attr default_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

KernelCandidate onednn_candidate(const std::string& name, const OnednnPlanner& planner) {
  return checked_candidate(name, [planner](const KernelRequest& request) -> KernelMaker {
    return [plan = describing_to_onednn([&] { return planner(request); }), &request] {
      return calling_onednn([&] { return std::make_unique<OnednnKernel>(plan, request); });
    };
  });
}

}  // namespace tessera::cpu
