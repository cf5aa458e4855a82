#include <system_error>

#include "tessera/base/error.h"
#include "tessera/data/sounds.h"
#include "tessera/data/transcripts.h"

#include "data/image/shard_index.h"
#include "data/sample_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

// In the folder itself or in its part for the split.
bool holds_tar_shards(const fs::path& folder, Split split) {
  const fs::path own = split_folder(folder, split).path;
  try {
    return !files_in(own, is_tar_shard).empty();
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

// An archive that is broken is told of where it is read.
bool begins_with_sound(const fs::path& archive) {
  try {
    return tar_sample_kind(archive) == &sound_samples();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::shared_ptr<const EncodedSamples> open_sound_folder(const fs::path& folder, const SplitOptions& options) {
  return open_folder(folder, sound_samples(), options);
}

std::shared_ptr<const EncodedSamples> open_sound_shards(const fs::path& folder, const SplitOptions& options) {
  return open_tar_samples(folder, sound_samples(), options);
}

std::shared_ptr<const EncodedSamples> open_labeled_sounds(const fs::path& folder,
                                                          const SplitOptions& options) {
  if (!holds_tar_shards(folder, options.split)) return open_sound_folder(folder, options);
  auto samples = open_sound_shards(folder, options);
  require(samples->label(0) >= 0, ErrorCode::invalid_file, "{}: its sounds have transcripts and no class",
          folder.string());
  return samples;
}

std::shared_ptr<const EncodedSamples> open_sounds(const fs::path& folder, const SplitOptions& options) {
  if (holds_transcripts(folder)) return open_transcribed_sounds(folder, options);
  return holds_tar_shards(folder, options.split) ? open_sound_shards(folder, options)
                                                 : open_sound_folder(folder, options);
}

bool holds_sounds(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (sound_samples().has_ending(entry.path())) return true;
    if (image_samples().has_ending(entry.path())) return false;
    if (is_tar_shard(entry.path())) return begins_with_sound(entry.path());
  }
  return false;
}

}  // namespace tessera::data
