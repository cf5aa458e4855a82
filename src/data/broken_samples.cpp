#include "tessera/data/broken_samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"

namespace tessera::data {
namespace {

constexpr int64_t kMostReplacements = 100;  // in a row, before the data is taken to be broken as a whole
constexpr size_t kNamedBroken = 5;

bool is_the_samples(const Error& error) {
  return error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::io;
}

}  // namespace

BrokenSamples broken_samples_of(const std::string& name) {
  if (name == "skip") return BrokenSamples::skip;
  return name == "replace" ? BrokenSamples::replace : BrokenSamples::fail;
}

Option broken_samples_option() {
  return {.key = "broken",
          .value = std::string("fail"),
          .documentation =
              "What becomes of a file that cannot be read: `fail`, `skip` (it counts nothing) or "
              "`replace` (by the next one); the report counts them",
          .choices = {"fail", "skip", "replace"}};
}

bool BrokenRecord::read(int64_t index, const std::function<void(int64_t index)>& read) const {
  for (int64_t tried = 0;; ++tried) {
    const int64_t candidate = (index + tried) % samples_;
    try {
      read(candidate);
      return true;
    } catch (const Error& error) {
      if (policy_ == BrokenSamples::fail || !is_the_samples(error)) throw;
      remember(candidate, error.what());
      const int64_t most = std::min(kMostReplacements, samples_);
      require(policy_ == BrokenSamples::skip || tried + 1 < most, ErrorCode::invalid_file,
              "none of {} samples in a row can be read; the last: {}", most, error.what());
    }
    if (policy_ == BrokenSamples::skip) return false;
  }
}

void BrokenRecord::remember(int64_t index, const std::string& message) const {
  const std::lock_guard lock(mutex_);
  if (!broken_.emplace(index, message).second) return;
  log_warning("{}: {}", policy_ == BrokenSamples::skip ? "skipped" : "replaced", message);
}

std::vector<std::string> BrokenRecord::remarks() const {
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) return {};
  std::string text = fmt::format("{} of {} samples could not be read and were {}: ", broken_.size(), samples_,
                                 policy_ == BrokenSamples::skip ? "skipped" : "replaced");
  size_t named = 0;
  for (const auto& [index, message] : broken_) {
    if (named == kNamedBroken) return {text + "; ..."};
    text += (named++ > 0 ? "; " : "") + message;
  }
  return {text};
}

}  // namespace tessera::data
