#include "data/sample_files.h"

#include <algorithm>
#include <system_error>

#include "tessera/base/file.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestClassList = uint64_t{1} << 26;  // bytes

}  // namespace

const SampleKind& image_samples() {
  static const SampleKind kind{.plural = "images", .endings = {".jpg", ".jpeg", ".png", ".webp"}};
  return kind;
}

bool SampleKind::has_ending(const fs::path& path) const {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::ranges::find(endings, ending) != endings.end();
}

bool stays_below(const std::string& name) {
  return !name.empty() && name[0] != '/' && name.find('\0') == std::string::npos &&
         ("/" + name + "/").find("/../") == std::string::npos;
}

void check_lies_below(const fs::path& path, const fs::path& root) {
  const fs::path target = fs::canonical(path);
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  require(end == root.end() && !fs::is_directory(target), ErrorCode::invalid_file,
          "{}: is a link {}; links to files below {} alone are followed", path.string(),
          fs::is_directory(target) ? "to a folder" : "out of the folder", root.string());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::optional<std::vector<std::string>> read_class_list(const fs::path& folder) {
  std::error_code ignored;
  const fs::path path = folder / kClassesName;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return lines_of(read_text_file(path, kLargestClassList));
}

}  // namespace tessera::data
