#include "train/joint_save.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/distribute/exchange.h"

namespace tessera::train {
namespace {

// Does the work on every rank. A disk that one of them cannot write to is told to all, so that none waits for
// a rank that has given up.
void together(Communicator& communicator, const std::function<void()>& work) {
  std::string fault;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    fault = error.what();
  }
  const std::vector<std::string> faults = distribute::gather_texts(communicator, fault);
  const auto first = std::find_if(faults.begin(), faults.end(), [](const auto& one) { return !one.empty(); });
  if (first != faults.end()) throw Error(ErrorCode::io, *first);
}

// Tensors that all ranks have alike are dealt out in turn.
void write_share(const CheckpointSource& state, const std::filesystem::path& file,
                 const Communicator& communicator) {
  data::SafetensorsFiller filler(file);
  int64_t turn = 0;
  for (const auto& [name, source] : state.tensors) {
    if (const auto part = state.parts.find(name); part != state.parts.end()) {
      filler.write(name, part->second.first, part->second.contents());
    } else if (turn++ % communicator.size() == communicator.rank()) {
      filler.write(name, 0, source.contents());
    }
  }
  filler.sync();
}

}  // namespace

void save_together(Communicator& communicator, const CheckpointSource& state,
                   const std::function<std::filesystem::path()>& prepare) {
  std::optional<AtomicFile> file;  // of rank 0
  together(communicator, [&] {
    if (communicator.rank() > 0) return;
    file.emplace(prepare());
    data::begin_safetensors(*file, state.tensors, state.metadata);
  });
  const std::string own = file.has_value() ? file->temporary().string() : "";
  const std::filesystem::path shared = distribute::gather_texts(communicator, own).front();
  together(communicator, [&] { write_share(state, shared, communicator); });
  together(communicator, [&] {
    if (file.has_value()) file->commit();
  });
}

}  // namespace tessera::train
