#include "data/sample_files.h"

#include <algorithm>
#include <system_error>

#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/data/image.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestClassList = uint64_t{1} << 26;  // bytes

}  // namespace

const SampleKind& image_samples() {
  static const SampleKind kind{.plural = "images", .endings = {".jpg", ".jpeg", ".png", ".webp"}};
  return kind;
}

const SampleKind& sound_samples() {
  static const SampleKind kind{.plural = "sounds", .endings = {".wav", ".flac", ".ogg"}, .transcribed = true};
  return kind;
}

bool SampleKind::has_ending(const fs::path& path) const {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::ranges::find(endings, ending) != endings.end();
}

bool has_image_ending(const fs::path& path) {
  return image_samples().has_ending(path);
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

std::vector<fs::directory_entry> sorted_entries(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) entries.push_back(entry);
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path().native(); });
  return entries;
}

std::vector<fs::path> files_in(const fs::path& folder, bool (*is_wanted)(const fs::path&)) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && is_wanted(entry.path())) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

bool is_sound_list(const fs::path& file) {
  return file.extension() == ".jsonl";
}

bool is_sample(const fs::directory_entry& entry, const fs::path& root, const SampleKind& kind) {
  if (entry.is_symlink()) check_lies_below(entry.path(), root);
  return entry.is_regular_file() && kind.has_ending(entry.path());
}

std::vector<fs::path> of_split(const std::vector<fs::path>& files, Split split) {
  std::vector<fs::path> training;
  std::vector<fs::path> test;
  for (const fs::path& path : files) {
    const std::string name = path.filename().string();
    if (name.starts_with("train")) training.push_back(path);
    if (name.starts_with("val") || name.starts_with("test")) test.push_back(path);
  }
  if (training.empty() || test.empty()) return {};
  return split == Split::train ? training : test;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
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
