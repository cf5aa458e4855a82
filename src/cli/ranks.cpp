#include "cli/ranks.h"

#include <array>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"

#include "cli/commands.h"

namespace tessera::cli {
namespace {

std::string own_program() {
  std::array<char, 4096> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  require(length > 0 && length < std::ssize(path), ErrorCode::io, "this program does not find itself");
  return {path.data(), static_cast<size_t>(length)};
}

// The last one always stays.
void leave_out(distribute::LaunchOptions& launch, std::optional<int64_t> rank) {
  if (!rank.has_value() || launch.ranks == 1) return;
  for (int64_t place = std::ssize(launch.places); place < launch.ranks; ++place)
    launch.places.push_back(place);
  launch.places.erase(launch.places.begin() + *rank);
  --launch.ranks;
}

}  // namespace

std::vector<std::string> own_arguments() {
  const std::string text = read_text_file("/proc/self/cmdline");  // a NUL ends each
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1)
    words.emplace_back(text.c_str() + begin);
  words.erase(words.begin());
  return words;
}

void run_on_ranks(distribute::LaunchOptions launch, const std::vector<std::string>& arguments,
                  const Restarts& restarts) {
  launch.command = {own_program()};
  launch.command.insert(launch.command.end(), arguments.begin(), arguments.end());
  install_stop_handler();
  launch.stop = &stop_flag();
  for (int64_t left = restarts.most;;) {
    const distribute::LaunchResult result = distribute::launch(launch);
    if (result.failure.empty()) {
      if (result.code != 0) throw Interrupted{};
      return;
    }
    const bool refused = launch.restarted && !restarts.all_ranks && launch.ranks > 1 &&
                         result.code == exit_code(ErrorCode::invalid_argument);
    const bool again = refused || (left > 0 && result.of_the_machine);
    if (!again || stop_flag().load()) throw RanksEnded{result.code, result.failure};
    if (!refused) --left;
    if (refused || !restarts.all_ranks) leave_out(launch, refused ? launch.ranks - 1 : result.lost);
    log_warning("{}; going on with {} from the last checkpoint", result.failure,
                launch.ranks == 1 ? "1 rank" : fmt::format("{} ranks", launch.ranks));
    launch.restarted = true;
  }
}

}  // namespace tessera::cli
