// A backend as somebody outside of this repository writes one: exp by a kernel of its own that counts how
// often it ran, all else by the reference loops.
#include <cmath>

#include <tessera/extend.h>

#ifndef TESSERA_INTERFACE_VERSION
#include <tessera/interface_version.h>
#endif

namespace {

namespace ts = tessera;

class Exp : public ts::Kernel {
 public:
  explicit Exp(int64_t elements) : elements_(elements) {}
  void run(const ts::KernelArguments& arguments) override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (int64_t i = 0; i < elements_; ++i) y[i] = std::exp(x[i]);
  }

 private:
  int64_t elements_;
};

struct Entry {
  std::string key;
  ts::KernelCandidate candidate;
};

// With a kernel of an operator that there is not, where it is asked to have one.
ts::backend::KernelTable<Entry> make_table(const std::string& misspelt) {
  ts::backend::KernelTable<Entry> table;
  const auto exp = ts::backend::candidate_of<Exp>("own.exp", [](const ts::KernelRequest& request) {
    const ts::Value& x = *request.node.input(0);
    ts::backend::refuse_unless(x.data_type() == ts::DataType::fp32, "is of {}", to_string(x.data_type()));
    return x.type().element_count();
  });
  table.add({"exp", exp});
  if (!misspelt.empty()) table.add({misspelt, exp});
  return table;
}

class OwnDevice : public ts::HostMemoryDevice {
 public:
  explicit OwnDevice(const std::string& options) : table_(make_table(options)) { table_.check({}); }

  ts::DeviceDescription description() const override { return {.name = "right", .model = "of a test"}; }
  std::vector<ts::KernelCandidate> candidates(const ts::Node& node) const override {
    std::vector<ts::KernelCandidate> candidates;
    if (const Entry* own = table_.find(ts::backend::kernel_key(node))) candidates = {own->candidate};
    candidates.push_back(ts::reference_candidate());
    return candidates;
  }

 private:
  ts::backend::KernelTable<Entry> table_;
};

ts::Device* create(const char* options) {
  return new OwnDevice(options);
}

}  // namespace

extern "C" {
// Found by name when the library is loaded (tessera/compile/backend.h).
extern tessera::Backend tessera_backend;
tessera::Backend tessera_backend = {TESSERA_INTERFACE_VERSION, create};
}
