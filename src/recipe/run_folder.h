// The folder of a run: one run at a time, its recipe, and nothing left behind by a run that did not begin.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/file_lock.h"
#include "tessera/recipe/recipe.h"

namespace tessera::recipe {

class RunFolder {
 public:
  // Makes the folder where it is missing and locks it until the end of this object or of the process. Throws
  // Error(io) when another run is at work in it, when it holds a run and `resume` is not set or the other way
  // round, and when it has a recipe.toml that a new run of `recipe` would write over.
  // Unless it `writes`, it only says where things are, to a rank whose run another one keeps here.
  RunFolder(const std::filesystem::path& path, const Recipe& recipe, bool resume, bool writes = true);
  // Takes away what the constructor made, unless the run began.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path last() const { return checkpoints() / "last.safetensors"; }
  std::filesystem::path recipe_file() const { return path_ / "recipe.toml"; }

  // The recipe that the saved state was made with: its text is in the state, or, of older states, in
  // recipe.toml.
  Recipe begun_recipe(const std::map<std::string, std::string>& metadata) const;

  // Keeps the folder and writes the recipe, once. That of a resumed run is written again only where it
  // differs and the present text is the one that was written for `begun`: a file that somebody edited stays.
  void begin(const Recipe& recipe, const std::optional<Recipe>& begun);

 private:
  void check_contents(const Recipe& recipe, bool resume) const;
  void remove_what_was_made() noexcept;

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // folders, the innermost first
  std::optional<FileLock> lock_;
  bool began_ = false;
};

}  // namespace tessera::recipe
