// Any list of sounds and any list of LibriSpeech's transcripts either is refused with an Error or names
// sounds that lie below its folder.
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/transcripts.h"

#include "fuzz.h"

namespace {

using tessera::data::ListedSound;

template <typename Parse>
void check(const Parse& parse, std::string_view text) {
  std::vector<ListedSound> sounds;
  try {
    sounds = parse(text, "input");
  } catch (const tessera::Error& error) {
    if (error.code() != tessera::ErrorCode::invalid_file) std::abort();
  }
  for (const ListedSound& sound : sounds) {
    if (sound.file.empty() || sound.file[0] == '/') std::abort();
    if (("/" + sound.file + "/").find("/../") != std::string::npos) std::abort();
    if (sound.seconds.value_or(1) <= 0) std::abort();
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(tessera::data::parse_sound_list, text);
  check(tessera::data::parse_transcripts, text);
  return 0;
}
