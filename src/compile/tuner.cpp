#include "compile/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/base/random.h"
#include "tessera/base/tensor.h"
#include "tessera/graph/operator.h"

#include "compile/kernel_failure.h"
#include "compile/queue_work.h"

namespace tessera {
namespace {

constexpr int kRepetitions = 7;
// What gains less over a candidate that the device would rather take wins by noise.
constexpr double kLeastGain = 0.02;
constexpr double kBudgetSeconds = 0.5;  // per candidate; slow kernels run fewer times
constexpr int64_t kCacheBytes = 64 << 20;
// Of larger tensors this many elements are synthetic, and repeated, and as many compared at each end.
constexpr int64_t kSample = 1 << 16;

// The first and the last elements of every output.
std::vector<Tensor> read_outputs(const Node& node, Queue& queue, const std::vector<void*>& outputs) {
  std::vector<Tensor> result;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const TensorType& type = node.output(i)->type();
    const int64_t count = std::min(type.element_count(), kSample);
    const int64_t rest = type.bytes() - bytes_of(type.data_type, count);
    for (const int64_t offset : {int64_t{0}, rest}) {
      result.emplace_back(type.data_type, Shape{count});
      queue.copy_to_host(result.back().raw(), static_cast<const char*>(outputs[i]) + offset,
                         static_cast<int64_t>(result.back().bytes()));
    }
  }
  return result;
}

// A loose net for wrong kernels, not a test of accuracy: 1 % of the largest magnitude.
bool agree(const std::vector<double>& expected, const Tensor& tensor) {
  if (is_complex(tensor.data_type())) return agree(expected, tensor.parts());
  const std::vector<double> actual = tensor.to_doubles();
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t e = 0; e < actual.size(); ++e) {
    const double x = expected[e], y = actual[e];
    const bool same = x == y || (std::isnan(x) && std::isnan(y));
    if (!same && !(std::abs(x - y) <= 0.01 * largest)) return false;
  }
  return true;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  return is_complex(tensor.data_type()) ? tensor.parts().to_doubles() : tensor.to_doubles();
}

std::vector<std::unique_ptr<Graph>> anonymous_bodies(const Node& node);

// Names inside a body are those of the network; places say the same.
std::unique_ptr<Graph> anonymous(const Graph& graph) {
  auto result = std::make_unique<Graph>("body");
  ValueMapping mapping;
  for (const auto& input : graph.inputs()) {
    mapping[input.get()] =
        result->add_input(input->role(), fmt::format("x{}", mapping.size()), input->type());
  }
  int64_t count = 0;
  for (const auto& node : graph.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(mapping.at(input));
    const Node* copy = result->add_node(node->operator_name(), node->operands(inputs), node->attributes(),
                                        fmt::format("y{}", count++), anonymous_bodies(*node));
    for (size_t i = 0; i < node->outputs().size(); ++i) mapping[node->output(i)] = copy->output(i);
  }
  for (const auto& output : graph.outputs()) result->add_output("y", mapping.at(output.value));
  return result;
}

std::vector<std::unique_ptr<Graph>> anonymous_bodies(const Node& node) {
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : node.bodies()) bodies.push_back(anonymous(*body));
  return bodies;
}

// The extent of what an input counts, where it counts anything: the most that it may be.
std::optional<int64_t> counted_extent(const Node& node, size_t place) {
  if (const Graph* body = node.body()) {
    for (const Use& use : body->inputs()[place]->uses()) {
      if (const std::optional<int64_t> extent = counted_extent(*use.node, use.index)) return extent;
    }
    return std::nullopt;
  }
  const std::optional<InputSpecification::Counted>& counts = node.specification(place).counts;
  if (!counts.has_value()) return std::nullopt;
  size_t other = 0;
  while (node.specification(other).name != counts->operand) ++other;
  return node.input(other)->type().static_shape()[counts->axis];
}

}  // namespace

// Device memory for every input and output of a node. Inputs hold small random numbers, zeros for integers
// (labels and indices must stay in range), and for counts all that there are: the most work.
struct Tuner::Buffers {
  std::vector<std::shared_ptr<void>> owned;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

  Buffers(const Node& node, Device& device, Queue& queue, Samples& samples) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const TensorType& type = node.input(i)->type();
      const std::optional<int64_t> extent = counted_extent(node, i);
      Tensor counts;
      if (extent.has_value()) counts = Tensor::full(type.data_type, {kSample}, static_cast<double>(*extent));
      const Tensor& host = extent.has_value() ? counts : sample(samples, type.data_type, i);
      owned.push_back(device.allocate(type.bytes()));
      auto* memory = static_cast<char*>(owned.back().get());
      int64_t done = bytes_of(type.data_type, std::min(type.element_count(), kSample));
      queue.copy_from_host(memory, host.raw(), done);
      for (; done < type.bytes(); done *= 2)
        queue.copy(memory + done, memory, std::min(done, type.bytes() - done));
      queue.synchronize();
      inputs.push_back(owned.back().get());
    }
    for (const auto& output : node.outputs()) {
      owned.push_back(device.allocate(output->type().bytes()));
      outputs.push_back(owned.back().get());
    }
  }

  // Of the type, for that input; made once, as numbers by the hundred thousand take their time.
  static const Tensor& sample(Samples& samples, DataType type, size_t input) {
    const auto [place, is_new] = samples.try_emplace({type, input});
    if (!is_new) return place->second;
    Tensor host(type, {kSample});
    if (is_floating(type)) {
      const Random random(1, input);
      for (int64_t e = 0; e < host.size(); ++e) host.set(e, random.uniform(static_cast<uint64_t>(e)) + 0.1);
    }
    return place->second = std::move(host);
  }

  // Not a number in every floating type, so that a kernel that writes nothing is found out.
  void forget_outputs(const Node& node, Queue& queue) const {
    for (size_t i = 0; i < outputs.size(); ++i) queue.fill(outputs[i], 0xff, node.output(i)->type().bytes());
  }
};

Tuner::Tuner(Device& device, std::string file, bool measure)
    : device_(device), queue_(device.queue()), file_(std::move(file)), measure_(measure) {
  const DeviceDescription description = device.description();
  device_key_ = description.name + "; " + description.model;
  for (const auto& [library, version] : description.versions)
    device_key_ += fmt::format("; {} {}", library, version);
  if (file_.empty()) return;
  TuningResultsOfDevices devices = read_tuning_file(file_);
  results_ = std::move(devices[device_key_]);
}

std::string Tuner::key_of(const KernelRequest& request) {
  Graph graph("node");
  ValueMapping mapping;
  for (const Value* input : request.node.inputs()) {
    if (mapping.contains(input)) continue;
    mapping[input] = graph.add_input(InputRole::input, fmt::format("x{}", mapping.size()), input->type());
  }
  std::vector<Value*> inputs;
  for (const Value* input : request.node.inputs()) inputs.push_back(mapping.at(input));
  graph.add_node(request.node.operator_name(), request.node.operands(inputs), request.node.attributes(), "y",
                 anonymous_bodies(request.node));
  std::string key = print(graph);
  for (bool frozen : request.frozen_inputs) key += frozen ? 'f' : 'v';
  // What is fast with rounded products, or sums in any order, may be refused or slow without.
  key += fmt::format(" tf32 {:d} deterministic {:d}", request.tf32, request.deterministic);
  return key;
}

const TuningResult* Tuner::remembered(const std::string& key,
                                      const std::vector<WillingCandidate>& candidates) const {
  const auto known = results_.find(key);
  if (known == results_.end()) return nullptr;
  // A candidate that appeared since makes the entry stale.
  const auto is_timed = [&](const WillingCandidate& one) {
    return known->second.microseconds.contains(one.name());
  };
  return std::all_of(candidates.begin(), candidates.end(), is_timed) ? &known->second : nullptr;
}

bool Tuner::measures(const KernelRequest& request, const std::vector<WillingCandidate>& candidates) const {
  return measure_ && device_.executes() && candidates.size() > 1 &&
         remembered(key_of(request), candidates) == nullptr;
}

TuningResult Tuner::choose(const KernelRequest& request, const std::vector<WillingCandidate>& candidates) {
  const std::string key = key_of(request);
  if (const TuningResult* known = remembered(key, candidates)) return *known;
  if (!measure_ || !device_.executes()) return {candidates.front().name(), {}};
  const std::optional<TuningResult> result = measure(request, candidates);
  if (!result.has_value()) return {candidates.front().name(), {}};
  results_[key] = *result;
  measured_[key] = *result;
  return *result;
}

std::optional<TuningResult> Tuner::measure(const KernelRequest& request,
                                           const std::vector<WillingCandidate>& candidates) {
  try {
    return measure(request, candidates, Buffers(request.node, device_, *queue_, samples_));
  } catch (const std::exception& exception) {
    const Error error = as_error(exception);
    if (error.code() != ErrorCode::out_of_memory) throw;
    log_warning("'{}' is not tuned: {}", request.node.name(), error.what());
  }
  return std::nullopt;
}

TuningResult Tuner::measure(const KernelRequest& request, const std::vector<WillingCandidate>& candidates,
                            const Buffers& buffers) {
  TuningResult result{candidates.front().name(), {}};
  std::vector<std::vector<double>> expected;
  double best = INFINITY;
  const std::shared_ptr<void> cache = device_.allocate(kCacheBytes);
  for (const WillingCandidate& candidate : candidates) {
    // Not measured stays on record as infinitely slow, so that it is not tried again.
    result.microseconds[candidate.name()] = 1e30;
    try {
      const std::optional<double> median = naming_kernel(candidate.name(), request.node, [&] {
        return time(request, candidate, buffers, cache.get(), expected);
      });
      if (!median.has_value()) {
        log_warning("kernel {} disagrees with {} on {} and is left out", candidate.name(),
                    candidates.front().name(), request.node.name());
        continue;
      }
      result.microseconds[candidate.name()] = *median;
      if (*median < best * (1 - kLeastGain)) {
        best = *median;
        result.winner = candidate.name();
      }
    } catch (const Error& error) {
      // Nothing of this node is remembered.
      if (is_of_the_machine(error.code())) throw;
      log_warning("kernel {} is left out: {}", candidate.name(), error.what());
    }
  }
  return result;
}

std::optional<double> Tuner::time(const KernelRequest& request, const WillingCandidate& candidate,
                                  const Buffers& buffers, void* cache,
                                  std::vector<std::vector<double>>& expected) {
  const std::unique_ptr<Kernel> kernel = candidate.make();
  const std::shared_ptr<void> workspace = device_.allocate(std::max<int64_t>(kernel->workspace_bytes(), 1));
  const std::vector<Packing> packings = kernel->packings();
  std::vector<std::shared_ptr<void>> owned;
  std::vector<const void*> packed;
  for (size_t i = 0; i < packings.size(); ++i) {
    owned.push_back(device_.allocate(std::max<int64_t>(packings[i].bytes, 1)));
    kernel->pack(i, buffers.inputs[packings[i].input], owned.back().get());
    packed.push_back(owned.back().get());
  }
  const QueueWork done(*queue_);
  buffers.forget_outputs(request.node, *queue_);
  const KernelArguments arguments{buffers.inputs, buffers.outputs, workspace.get(), *queue_, packed};
  kernel->run(arguments);  // warm-up
  queue_->synchronize();
  const std::vector<Tensor> results = read_outputs(request.node, *queue_, buffers.outputs);
  if (expected.empty()) {
    for (const Tensor& result : results) expected.push_back(numbers_of(result));
  } else if (!std::equal(expected.begin(), expected.end(), results.begin(), agree)) {
    return std::nullopt;
  }
  return median_time([&] { queue_->fill(cache, 1, kCacheBytes); }, [&] { kernel->run(arguments); });
}

// The device's own clock, where it has one, does not see what the host takes to launch: `before` is still
// running then.
double Tuner::median_time(const std::function<void()>& before, const std::function<void()>& work) {
  const std::unique_ptr<DeviceTimer> timer = queue_->timer(2 * kRepetitions);
  std::vector<double> times;
  const auto start = Clock::now();
  for (int run = 0; run < kRepetitions && (run == 0 || seconds_since(start) < kBudgetSeconds); ++run) {
    before();
    if (timer != nullptr) {
      timer->mark();
      work();
      timer->mark();
      queue_->synchronize();
    } else {
      queue_->synchronize();
      const auto begin = Clock::now();
      work();
      queue_->synchronize();
      times.push_back(TimeSpan{begin, Clock::now()}.microseconds());
    }
  }
  if (timer != nullptr) {
    const std::vector<Clock::time_point> points = timer->points();
    for (size_t i = 0; i < points.size(); i += 2)
      times.push_back(TimeSpan{points[i], points[i + 1]}.microseconds());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void Tuner::save() const {
  if (measured_.empty() || file_.empty()) return;
  try {
    add_to_tuning_file(file_, device_key_, measured_);
  } catch (const std::exception& error) {  // a cache never stops the work
    log_warning("cannot write the tuning file {}: {}", file_, error.what());
  }
}

}  // namespace tessera
