#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <system_error>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

struct File {
  fs::path path;  // below the folder
  int32_t label = 0;
};

std::vector<std::byte> beginning_of(const fs::path& path, int64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  require(file.good(), ErrorCode::io, "{}: its first {} bytes cannot be read", path.string(), size);
  return bytes;
}

class FolderSamples : public EncodedSamples {
 public:
  FolderSamples(fs::path folder, std::vector<std::string> classes, std::vector<File> files)
      : folder_(std::move(folder)), classes_(std::move(classes)), files_(std::move(files)) {}

  int64_t size() const override { return std::ssize(files_); }
  int32_t label(int64_t index) const override { return file(index).label; }
  std::string name(int64_t index) const override { return (folder_ / file(index).path).string(); }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::vector<std::byte> bytes(int64_t index) const override {
    return read_file(folder_ / file(index).path, kLargestSample);
  }
  std::vector<std::byte> first_bytes(int64_t index, int64_t most) const override {
    const fs::path path = folder_ / file(index).path;
    std::error_code unknown;
    const auto size = static_cast<int64_t>(fs::file_size(path, unknown));
    return unknown || size <= most ? bytes(index) : beginning_of(path, most);
  }

 private:
  const File& file(int64_t index) const { return files_[static_cast<size_t>(index)]; }

  fs::path folder_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

class NamedFiles : public EncodedSamples {
 public:
  explicit NamedFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  int64_t size() const override { return std::ssize(paths_); }
  int32_t label(int64_t /*index*/) const override { return -1; }
  std::string name(int64_t index) const override { return paths_[static_cast<size_t>(index)]; }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::vector<std::byte> bytes(int64_t index) const override {
    return read_file(name(index), kLargestSample);
  }

 private:
  std::vector<std::string> paths_;
  std::vector<std::string> classes_;
};

void collect(const fs::path& folder, const fs::path& root, const SampleKind& kind, int32_t label,
             std::vector<File>& files) {
  for (const fs::directory_entry& entry : sorted_entries(folder)) {
    if (is_sample(entry, root, kind)) {
      files.push_back({entry.path().lexically_relative(root), label});
    } else if (entry.is_directory()) {
      collect(entry.path(), root, kind, label, files);
    }
  }
}

// The classes of a part are those of the training, whichever of them it has samples of.
std::vector<std::string> class_folders(const fs::path& root, const SampleKind& kind) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : sorted_entries(root)) {
    if (!is_sample(entry, root, kind) && entry.is_directory())
      names.push_back(entry.path().filename().string());
  }
  return names;
}

std::shared_ptr<const EncodedSamples> scan(const fs::path& folder, const SampleKind& kind,
                                           const SplitOptions& options) {
  const SplitFolder split = split_folder(folder, options.split);
  const fs::path root = fs::canonical(split.path);
  const std::vector<std::string> own = class_folders(root, kind);
  std::vector<std::string> classes = own;
  if (!split.whole && fs::is_directory(folder / "train"))
    classes = class_folders(fs::canonical(folder / "train"), kind);
  std::vector<File> files;
  for (const std::string& name : own) {
    const auto place = std::ranges::lower_bound(classes, name);
    require(place != classes.end() && *place == name, ErrorCode::invalid_file,
            "{}: there is no such class in the training {}", (root / name).string(), kind.plural);
    collect(root / name, root, kind, static_cast<int32_t>(place - classes.begin()), files);
  }
  require(!files.empty(), ErrorCode::invalid_file,
          "{}: holds no {}; expected a folder for each class with files ending in {}", root.string(),
          kind.plural, fmt::join(kind.endings, ", "));
  if (split.whole) files = part_of(files, options, root.string());
  return std::make_shared<FolderSamples>(root, std::move(classes), std::move(files));
}

}  // namespace

std::shared_ptr<const EncodedSamples> named_files(std::vector<std::string> paths) {
  return std::make_shared<NamedFiles>(std::move(paths));
}

SplitFolder split_folder(const fs::path& folder, Split split) {
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ErrorCode::io, "{}: no such folder", folder.string());
  fs::path test;
  for (const char* name : kTestFolders)
    if (test.empty() && fs::is_directory(folder / name, ignored)) test = folder / name;
  const bool has_training = fs::is_directory(folder / "train", ignored);
  if (!has_training && test.empty()) return {.path = folder, .whole = true};
  if (split == Split::train && has_training) return {.path = folder / "train", .whole = false};
  if (split == Split::test && !test.empty()) return {.path = test, .whole = false};
  fail(ErrorCode::invalid_file, "{}: has a part '{}' and none for {}; expected {}", folder.string(),
       has_training ? "train" : test.filename().string(), split == Split::test ? "the test" : "training",
       split == Split::test ? "'val', 'validation' or 'test' beside it" : "'train' beside it");
}

std::shared_ptr<const EncodedSamples> open_folder(const fs::path& folder, const SampleKind& kind,
                                                  const SplitOptions& options) {
  try {
    return scan(folder, kind, options);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::io, "{}: {}", error.path1().string(), error.code().message());
  }
}

std::shared_ptr<const EncodedSamples> open_image_folder(const fs::path& folder, const SplitOptions& options) {
  return open_folder(folder, image_samples(), options);
}

}  // namespace tessera::data
