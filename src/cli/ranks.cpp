#include "cli/ranks.h"

#include <array>

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
                  int64_t restarts) {
  launch.command = {own_program()};
  launch.command.insert(launch.command.end(), arguments.begin(), arguments.end());
  install_stop_handler();
  launch.stop = &stop_flag();
  for (int64_t left = restarts;; --left) {
    const distribute::LaunchResult result = distribute::launch(launch);
    if (result.failure.empty()) {
      if (result.code != 0) throw Interrupted{};
      return;
    }
    const bool again = left > 0 && result.of_the_machine && !stop_flag().load();
    if (!again) throw RanksEnded{result.code, result.failure};
    log_warning("{}; all ranks begin anew from the last checkpoint", result.failure);
    launch.restarted = true;
  }
}

}  // namespace tessera::cli
