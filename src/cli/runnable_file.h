// Networks in files as `run` takes them. Each format registers itself, in its own file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/registry.h"
#include "tessera/program/item.h"
#include "tessera/program/module.h"

namespace tessera::cli {

class RunnableFile {
 public:
  virtual ~RunnableFile() = default;
  virtual std::vector<program::Declaration> inputs() const = 0;
  virtual std::vector<program::Declaration> outputs() const = 0;
  virtual std::map<std::string, program::Item> run(const std::map<std::string, program::Item>& inputs) = 0;
  // Prints how it ran.
  virtual void explain() const = 0;
};

struct RunnableOptions {
  std::string device = {};     // "": the format's own choice
  std::string precision = {};  // "": the file's own types
};

struct RunnableFormat {
  std::string name;  // what its files end with: ".onnx"
  std::function<std::unique_ptr<RunnableFile>(const std::string& path, const RunnableOptions& options)> open;
};

Registry<RunnableFormat>& runnable_formats();

struct RunnableFormatRegistration {
  explicit RunnableFormatRegistration(RunnableFormat format) { runnable_formats().add(std::move(format)); }
};

}  // namespace tessera::cli
