// Parts of files of text, and the documents in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/tokenize.h"

namespace tessera::data {

using TextVisitor = std::function<void(const std::vector<std::string_view>& texts)>;

// Bytes of files, one after another, or row groups; of parallel text those of a file and of its translation.
struct CorpusPart {
  struct Range {
    size_t file = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;  // of text
  };
  std::vector<Range> ranges;
};

class Corpus {
 public:
  // Throws as for_each_document() does.
  Corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options);

  const std::vector<CorpusPart>& parts() const { return parts_; }
  // Files are open only while they are read: there may be more of them than a process may hold.
  struct File {
    std::filesystem::path path;
    uint64_t size = 0;
  };
  const std::vector<File>& files() const { return files_; }
  // May be called by several threads.
  void visit(const CorpusPart& part, const TextVisitor& visitor) const;

 private:
  void plan_file(size_t file);
  void plan_row_groups(size_t file);
  void plan_parallel();
  void add(const CorpusPart::Range& range);
  std::string read(const CorpusPart::Range& range) const;
  void visit_text(std::string_view text, const CorpusPart::Range& range, const TextVisitor& visitor) const;
  void visit_row_groups(const CorpusPart::Range& range, const TextVisitor& visitor) const;
  void visit_json(std::string_view line, const CorpusPart::Range& range, uint64_t at,
                  const TextVisitor& visitor) const;

  CorpusOptions options_;
  std::vector<File> files_;
  std::vector<CorpusPart> parts_;
};

}  // namespace tessera::data
