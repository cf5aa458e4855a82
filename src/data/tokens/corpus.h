// Parts of files of text, and the documents in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "tessera/base/file.h"
#include "tessera/data/tokenize.h"

namespace tessera::data {

using TextVisitor = std::function<void(const std::vector<std::string_view>& texts)>;

// Bytes of a file, and of its translation.
struct CorpusPart {
  struct Range {
    size_t file = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  std::vector<Range> ranges;
};

class Corpus {
 public:
  // Throws as for_each_document() does.
  Corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options);

  const std::vector<CorpusPart>& parts() const { return parts_; }
  const std::vector<MappedFile>& files() const { return files_; }
  // May be called by several threads.
  void visit(const CorpusPart& part, const TextVisitor& visitor) const;

 private:
  void plan_file(size_t file);
  void plan_parallel();
  std::string_view text_of(size_t file) const;
  void visit_json(std::string_view line, const CorpusPart::Range& range, const char* begin,
                  const TextVisitor& visitor) const;

  CorpusOptions options_;
  std::vector<MappedFile> files_;
  std::vector<CorpusPart> parts_;
};

}  // namespace tessera::data
