#include "recipe/run_folder.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"

#include "recipe/recipe_table.h"

namespace tessera::recipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".tessera-run.lock";
constexpr uint64_t kMaximumRecipeBytes = 1 << 20;

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The folders that making this one would make, the innermost first.
std::vector<fs::path> missing_folders(fs::path path) {
  std::vector<fs::path> missing;
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  while (!path.empty() && !is_present(path)) {
    missing.push_back(path);
    path = path.parent_path();
  }
  return missing;
}

std::string text_of(const fs::path& file) {
  return is_present(file) ? read_text_file(file, kMaximumRecipeBytes) : "";
}

}  // namespace

RunFolder::RunFolder(const fs::path& path, const Recipe& recipe, bool resume, bool writes) : path_(path) {
  if (!writes) return;
  if (resume) check_contents(recipe, resume);  // lest the folder be made
  made_ = missing_folders(path_);
  try {
    make_folder(path_);
    lock_ = FileLock::try_lock(path_ / kLock);
    if (!lock_.has_value()) {
      const std::string holder = FileLock::holder(path_ / kLock);
      fail(ErrorCode::io,
           "{}: another run is at work in this folder{}: wait for its end, or choose another --out",
           path_.string(), holder.empty() ? "" : fmt::format(" (process {})", holder));
    }
    check_contents(recipe, resume);
  } catch (...) {
    remove_what_was_made();
    throw;
  }
}

RunFolder::~RunFolder() {
  remove_what_was_made();
}

// Folders that are not empty are somebody's: removing them fails, as it should.
void RunFolder::remove_what_was_made() noexcept {
  lock_.reset();
  if (began_) return;
  std::error_code ignored;
  for (const fs::path& folder : made_) fs::remove(folder, ignored);
}

void RunFolder::check_contents(const Recipe& recipe, bool resume) const {
  if (resume) {
    require(is_present(last()), ErrorCode::io, "{}: there is no checkpoint to resume from", last().string());
    return;
  }
  for (const fs::path& file : {last(), path_ / "model.safetensors"}) {
    require(!is_present(file), ErrorCode::io,
            "{} holds a run already: go on with it by --resume, or choose another --out", path_.string());
  }
  require(!is_present(recipe_file()) || text_of(recipe_file()) == to_toml(recipe), ErrorCode::io,
          "{}: the run would write its own recipe over this file: choose another --out, or move the file",
          recipe_file().string());
}

Recipe RunFolder::begun_recipe(const std::map<std::string, std::string>& metadata) const {
  const auto found = metadata.find("recipe");
  const bool is_there = found != metadata.end();
  const std::string name = (is_there ? last() : recipe_file()).string();
  try {
    return parse_recipe(is_there ? found->second : read_text_file(recipe_file(), kMaximumRecipeBytes), name);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::io, ErrorCode::invalid_file, "{}", error.what());
    throw;
  }
}

void RunFolder::begin(const Recipe& recipe, const std::optional<Recipe>& begun) {
  const std::string text = to_toml(recipe);
  const std::string present = text_of(recipe_file());
  if (present.empty() || (begun.has_value() && present != text && is_spelled_out(present, *begun))) {
    write_file(recipe_file(), std::string_view(text));
  } else if (present != text) {
    log_warning("{} was edited and stays as it is; what the run was given is in {}", recipe_file().string(),
                last().string());
  }
  began_ = true;
}

}  // namespace tessera::recipe
