#include "train/checkpoint_writer.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"
#include "tessera/data/safetensors.h"
#include "tessera/distribute/exchange.h"

#include "train/joint_save.h"
#include "train/over_ranks.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLast = "last.safetensors";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

// The updates in the name of a file that was kept.
std::optional<int64_t> step_of_name(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const size_t digits = name.size() - kPrefix.size() - kSuffix.size();
  return parse_integer(std::string_view(name).substr(kPrefix.size(), digits));
}

// None in a file that is damaged: what is to be written anew is no reason to fail.
std::optional<int64_t> step_in_file(const fs::path& path) {
  try {
    const data::SafetensorsFile file = data::SafetensorsFile::open(path);
    const auto found = file.metadata().find("step");
    return found == file.metadata().end() ? std::nullopt : parse_integer(found->second);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// One more name for the same bytes; a copy where the file system has no such names.
void add_name(const fs::path& file, const fs::path& name) {
  std::error_code error;
  fs::remove(name, error);  // of an earlier run through the same steps
  fs::create_hard_link(file, name, error);
  if (error) write_file(name, MappedFile(file).bytes());
}

}  // namespace

CheckpointWriter::CheckpointWriter(const FitOptions& options, int64_t step, Communicator* communicator)
    : options_(options),
      attempted_step_(step),
      communicator_(communicator),
      enabled_(is_first() && !options.checkpoints.empty()) {
  if (communicator_ != nullptr) enabled_ = distribute::any_rank(*communicator_, enabled_);
}

bool CheckpointWriter::due(int64_t step) const {
  if (!enabled() || step == attempted_step_) return false;
  if (options_.checkpoint_steps > 0 && step % options_.checkpoint_steps == 0) return true;
  return options_.checkpoint_minutes > 0 && seconds_since(attempted_) >= 60 * options_.checkpoint_minutes;
}

bool CheckpointWriter::due_after_epoch(int64_t epoch, int64_t step) const {
  const bool by_epochs = options_.checkpoint_every > 0 && epoch % options_.checkpoint_every == 0;
  return agreed(communicator_, {.save = enabled() && (by_epochs || due(step))}).save;
}

void CheckpointWriter::save(const CheckpointSource& state, int64_t step, bool must) {
  attempted_step_ = step;
  try {
    if (communicator_ == nullptr) {
      tessera::save(state, prepare(step));
    } else {
      save_together(*communicator_, state, [&] { return prepare(step); });
    }
    if (is_first() && options_.keep_checkpoints > 1) remove_old(step);
  } catch (const Error& error) {
    if (must || error.code() != ErrorCode::io) throw;
    if (is_first())
      log_warning("after step {} the state could not be saved; the run goes on and tries again later: {}",
                  step, error.what());
  }
  attempted_ = Clock::now();
}

// The file to write, after what there is was kept.
fs::path CheckpointWriter::prepare(int64_t step) const {
  make_folder(options_.checkpoints);
  if (options_.keep_checkpoints != 1) keep_previous(step);
  return options_.checkpoints / kLast;
}

bool CheckpointWriter::save_best(const CheckpointSource& weights) const {
  if (!is_first()) return false;
  try {
    make_folder(options_.checkpoints);
    tessera::save(weights, options_.checkpoints / "best.safetensors");
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    log_warning("the best weights so far could not be saved: {}", error.what());
    return false;
  }
}

// The step of the present last.safetensors stands in itself, so that a run that was killed anywhere goes on
// right.
void CheckpointWriter::keep_previous(int64_t step) const {
  const fs::path last = options_.checkpoints / kLast;
  std::error_code ignored;
  if (!fs::exists(last, ignored)) return;
  const std::optional<int64_t> previous = step_in_file(last);
  if (!previous.has_value() || *previous >= step) return;
  add_name(last, options_.checkpoints / fmt::format("{}{:08}{}", kPrefix, *previous, kSuffix));
}

// Those of later steps are of a run from which somebody went back: they are not this one's to remove.
void CheckpointWriter::remove_old(int64_t step) const {
  std::vector<std::pair<int64_t, fs::path>> kept;
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.checkpoints)) {
    const std::optional<int64_t> of_name = step_of_name(entry.path().filename().string());
    if (of_name.has_value() && *of_name <= step) kept.emplace_back(*of_name, entry.path());
  }
  std::sort(kept.rbegin(), kept.rend());
  std::error_code ignored;
  for (auto i = static_cast<size_t>(options_.keep_checkpoints - 1); i < kept.size(); ++i)
    fs::remove(kept[i].second, ignored);
}

}  // namespace tessera::train
