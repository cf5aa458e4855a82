#include "device/cuda/codegen/generated_kernel.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/kernel_registry.h"
#include "device/cuda/runtime/check.h"
#include "device/cuda/runtime/queue.h"

namespace tessera::cuda {
namespace {

// From this architecture on a kernel may be started while the one before it ends, and wait on the GPU for
// what that has written: a microsecond less for each launch.
constexpr int kFirstThatStartsAhead = 90;

CUtensorMap encoded(const TensorMapArgument& map, CUdeviceptr matrix) {
  CUtensorMap result;
  const std::array<cuuint64_t, 2> extents{static_cast<cuuint64_t>(map.columns),
                                          static_cast<cuuint64_t>(map.rows)};
  const cuuint64_t row_bytes = extents[0] * static_cast<cuuint64_t>(size_of(map.type));
  const std::array<cuuint32_t, 2> tile{static_cast<cuuint32_t>(map.tile_columns),
                                       static_cast<cuuint32_t>(map.tile_rows)};
  const std::array<cuuint32_t, 2> steps{1, 1};
  const CUtensorMapDataType type =
      map.type == DataType::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  check(driver().cuTensorMapEncodeTiled_(&result, type, 2, reinterpret_cast<void*>(matrix), extents.data(),
                                         &row_bytes, tile.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "describing a matrix to the unit that copies it");
  return result;
}

class GeneratedKernel : public Kernel {
 public:
  GeneratedKernel(Context& context, GeneratedProgram program)
      : context_(context), program_(std::move(program)), module_(context.modules().get(program_.source)) {}

  int64_t workspace_bytes() const override { return program_.workspace_bytes; }
  bool may_overwrite(size_t output, size_t input) const override {
    return program_.may_overwrite && program_.may_overwrite(output, input);
  }

  void run(const KernelArguments& arguments) override {
    context_.enter();
    if (calls_.empty()) load();
    for (Call& call : calls_) {
      for (size_t i = 0; i < call.values.size(); ++i)
        call.values[i] = resolve(call.launch->arguments[i], arguments);
      for (size_t i = 0; i < call.maps.size(); ++i) {
        const TensorMapArgument& map = call.launch->maps[i];
        const CUdeviceptr matrix = resolve(map.matrix, arguments);
        if (std::exchange(call.mapped[i], matrix) != matrix) call.maps[i] = encoded(map, matrix);
      }
      if (call.launch->copies && call.values[0] == call.values[1]) continue;
      start(call, stream_of(arguments.queue));
    }
  }

 private:
  struct Call {
    const Launch* launch = nullptr;
    CUfunction function = nullptr;
    std::vector<CUtensorMap> maps;
    std::vector<CUdeviceptr> mapped;  // the matrices that they describe
    std::vector<CUdeviceptr> values;
    std::vector<void*> parameters;  // into the maps and values
  };

  // What a recording of runs cannot hold, and thus what the first run does.
  void load() {
    if (program_.counters > 0 && counters_ == nullptr)
      counters_ = context_.allocate(program_.counters * int64_t{sizeof(uint64_t)});
    std::vector<Call> calls;
    for (const Launch& launch : program_.launches) {
      if (launch.blocks == 0) continue;
      Call& call = calls.emplace_back();
      call.launch = &launch;
      call.function = module_->function(launch.entry);
      call.maps.resize(launch.maps.size());
      call.mapped.resize(launch.maps.size());
      for (CUtensorMap& map : call.maps) call.parameters.push_back(&map);
      call.values.resize(launch.arguments.size());
      const auto array = static_cast<size_t>(launch.array);
      for (size_t i = 0; i < call.values.size(); ++i) {
        if (i == 0 || i >= array) call.parameters.push_back(&call.values[i]);
      }
      if (launch.shared_bytes == 0) continue;
      check(driver().cuFuncSetAttribute_(call.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(launch.shared_bytes)),
            "asking for shared memory");
    }
    calls_ = std::move(calls);
  }

  void start(Call& call, CUstream stream) const {
    const Launch& launch = *call.launch;
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(launch.blocks);
    config.gridDimY = static_cast<unsigned>(launch.chunks);
    config.gridDimZ = 1;
    config.blockDimX = static_cast<unsigned>(launch.threads);
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(launch.shared_bytes);
    config.hStream = stream;
    std::array<CUlaunchAttribute, 2> attributes{};
    config.attrs = attributes.data();
    if (launch.resident) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attribute.value.cooperative = 1;
    } else if (context_.traits().architecture >= kFirstThatStartsAhead) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    if (launch.cluster > 1) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = static_cast<unsigned>(launch.cluster);
      attribute.value.clusterDim.y = 1;
      attribute.value.clusterDim.z = 1;
    }
    check(driver().cuLaunchKernelEx_(&config, call.function, call.parameters.data(), nullptr),
          "launching a generated kernel");
  }

  CUdeviceptr resolve(const Argument& argument, const KernelArguments& arguments) const {
    const auto index = static_cast<size_t>(argument.index);
    switch (argument.kind) {
      case Argument::Kind::input:
        return address(arguments.inputs[index]);
      case Argument::Kind::output:
        return address(arguments.outputs[index]);
      case Argument::Kind::counters:
        return address(counters_.get()) + index * sizeof(uint64_t);
      case Argument::Kind::workspace:
        break;
    }
    return address(arguments.workspace) + index;
  }

  Context& context_;
  GeneratedProgram program_;
  std::shared_ptr<Module> module_;
  std::vector<Call> calls_;
  std::shared_ptr<void> counters_;
};

}  // namespace

std::unique_ptr<Kernel> make_generated_kernel(Context& context, GeneratedProgram program) {
  return std::make_unique<GeneratedKernel>(context, std::move(program));
}

KernelCandidate generated_candidate(
    const std::string& name, Context& context,
    const std::function<GeneratedProgram(const KernelRequest& request, const GpuTraits& gpu)>& make) {
  return backend::checked_candidate("generated." + name,
                                    [make, &context](const KernelRequest& request) -> KernelMaker {
                                      return [program = make(request, context.traits()), &context] {
                                        return make_generated_kernel(context, program);
                                      };
                                    });
}

GeneratedRegistration::GeneratedRegistration(
    const std::string& key,
    std::function<GeneratedProgram(const KernelRequest& request, const GpuTraits& gpu)> make) {
  const std::string name = key.substr(key.find(':') + 1);  // a fused node by its kind
  CudaKernelRegistration(
      {.key = key, .candidates = [name, make = std::move(make)](const Node&, Context& context) {
         return std::vector{generated_candidate(name, context, make)};
       }});
}

GeneratedRegistration::GeneratedRegistration(
    const std::string& key, std::function<GeneratedProgram(const Node& node, const GpuTraits& gpu)> make)
    : GeneratedRegistration(key,
                            [make = std::move(make)](const KernelRequest& request, const GpuTraits& gpu) {
                              return make(request.node, gpu);
                            }) {}

std::string PointerList::add(std::string_view type, std::string name, Argument argument) {
  const std::string parameter = fmt::format("{}* {}", type, name);
  if (std::find(parameters_.begin(), parameters_.end(), parameter) == parameters_.end()) {
    parameters_.push_back(parameter);
    arguments_.push_back(argument);
  }
  return name;
}

std::string PointerList::input(size_t index) {
  return add("const " + device_type(node_.input(index)->data_type()), fmt::format("x{}", index),
             {Argument::Kind::input, static_cast<int64_t>(index)});
}

std::string PointerList::output(size_t index) {
  return add(device_type(node_.output(index)->data_type()), fmt::format("y{}", index),
             {Argument::Kind::output, static_cast<int64_t>(index)});
}

std::string PointerList::workspace(int64_t offset, std::string_view type) {
  return add(type, fmt::format("parts{}", parts_++), {Argument::Kind::workspace, offset});
}

void PointerList::input(std::string_view field, std::optional<size_t> index) {
  if (index.has_value()) fields_.emplace_back(field, input(*index));
}

void PointerList::output(std::string_view field, std::optional<size_t> index) {
  if (index.has_value()) fields_.emplace_back(field, output(*index));
}

void PointerList::inputs(std::string_view field, const std::vector<size_t>& indices) {
  for (size_t i = 0; i < indices.size(); ++i) input(fmt::format("{}[{}]", field, i), indices[i]);
}

void PointerList::workspace(std::string_view field, int64_t offset, std::string_view type) {
  fields_.emplace_back(field, workspace(offset, type));
}

std::string PointerList::parameters() const {
  return fmt::format("{}", fmt::join(parameters_, ", "));
}

std::string PointerList::filled(std::string_view structure, std::string_view name) const {
  std::string text = fmt::format("  {} {}{{}};\n", structure, name);
  for (const auto& [field, parameter] : fields_)
    text += fmt::format("  {}.{} = {};\n", name, field, parameter);
  return text;
}

std::string float_literal(double value) {
  return fmt::format("static_cast<float>({:a})", value);
}

bool has_device_type(DataType type) {
  return !is_packed(type) && !is_complex(type);
}

std::string device_type(DataType type) {
  backend::refuse_unless(has_device_type(type), "there is no kernel for {}", to_string(type));
  switch (type) {
    case DataType::fp32:
      return "float";
    case DataType::fp64:
      return "double";
    case DataType::fp16:
      return "half";
    case DataType::bf16:
      return "bfloat16";
    case DataType::boolean:
      return "bool";
    default:
      return std::string(to_string(type));
  }
}

void refuse_unless_multiplied(DataType type, bool tf32) {
  backend::refuse_unless(type == DataType::fp16 || type == DataType::bf16 || (type == DataType::fp32 && tf32),
                         "not for exact {}", to_string(type));
}

std::string entry_text(std::string_view name, int threads, std::string_view parameters, std::string_view body,
                       int blocks, Beginning beginning) {
  const std::string_view instruction =
      beginning == Beginning::ahead ? "griddepcontrol.launch_dependents" : "griddepcontrol.wait";
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}{}) {}({}) {{\n"
      "#if __CUDA_ARCH__ >= {}\n  asm volatile(\"{};\" ::: \"memory\");\n#endif\n{}}}\n",
      threads, blocks > 0 ? fmt::format(", {}", blocks) : "", name, parameters, 10 * kFirstThatStartsAhead,
      instruction, body);
}

std::string calling_entry(std::string_view name, int threads, const PointerList& pointers,
                          std::string_view structure, std::string_view function, int blocks,
                          Beginning beginning) {
  return entry_text(
      name, threads, pointers.parameters(),
      pointers.filled(structure, "pointers") + fmt::format("  {}<Problem>(pointers);\n", function), blocks,
      beginning);
}

int64_t blocks_for(int64_t count, int threads, const GpuTraits& gpu) {
  constexpr int64_t kResidentThreads = 2048;  // of a multiprocessor
  const int64_t most = gpu.multiprocessors * (kResidentThreads / threads) * 4;
  return std::min((count + threads - 1) / threads, most);
}

GeneratedProgram simple_program(const Node& node, const std::string& header, const std::string& statement,
                                int64_t blocks, int threads) {
  GeneratedProgram program;
  std::vector<std::string> parameters;
  Launch launch{.entry = "run", .blocks = blocks, .chunks = 1, .threads = threads, .arguments = {}};
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    parameters.push_back(fmt::format("const {}* x{}", device_type(node.input(i)->data_type()), i));
    launch.arguments.push_back({Argument::Kind::input, static_cast<int64_t>(i)});
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    parameters.push_back(fmt::format("{}* y{}", device_type(node.output(i)->data_type()), i));
    launch.arguments.push_back({Argument::Kind::output, static_cast<int64_t>(i)});
  }
  program.source =
      fmt::format("#include \"{}\"\nusing namespace tessera;\n", header) +
      entry_text("run", threads, fmt::format("{}", fmt::join(parameters, ", ")), statement + "\n");
  program.launches = {std::move(launch)};
  return program;
}

}  // namespace tessera::cuda
