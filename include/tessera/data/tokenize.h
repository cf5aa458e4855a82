// From files of text to shards of tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/data/token_shards.h"
#include "tessera/text/tokenizer.h"

namespace tessera::data {

// What a document is.
enum class DocumentKind : uint8_t {
  paragraph,   // lines up to one that holds nothing but white space
  line,        // a line that holds more than white space
  file,        // all of a file
  json_lines,  // a field of the object of JSON on a line
  parallel,  // a line of one file and the line of the same number of another, its translation; none where one
             // is empty
  parquet    // a cell of a column of texts that holds more than white space
};

struct CorpusOptions {
  DocumentKind documents = DocumentKind::paragraph;
  std::string field = "text";             // of json_lines, and the column of parquet
  int64_t part_bytes = int64_t{1} << 25;  // text of a shard, about; whole row groups of parquet
  int64_t threads = 0;                    // 0: as many as the machine runs
};

struct CorpusProgress {
  int64_t parts = 0;
  int64_t all_parts = 0;
  int64_t kept_parts = 0;  // of an earlier run that was stopped
  int64_t bytes = 0;       // of text, tokenized by this run
  int64_t documents = 0;
  int64_t tokens = 0;
};

// Visits the documents of files, each with its texts, in their order; of parquet a folder is its .parquet
// files. Throws Error(io), Error(invalid_file) naming the file and the line, Error(invalid_argument) for
// parallel files that are not two, or as read_parquet() does. What the visit throws ends it.
void for_each_document(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                       const std::function<void(const std::vector<std::string_view>& texts)>& visit);

struct TokenizeRequest {
  const text::Tokenizer& tokenizer;
  uint64_t fingerprint = 0;  // of its files
  std::vector<std::filesystem::path> files;
  std::filesystem::path folder;
  CorpusOptions options = {};
  std::function<void(const CorpusProgress&)> progress = {};  // after each part, of one thread at a time
  const std::atomic<bool>* stop = nullptr;  // ends the work after the parts that are under way
};

// Writes a shard for each part of the files and, when all are there, the list that TokenSet reads. Shards are
// the same whatever the number of threads. Where an earlier run of the same request was stopped, its shards
// are kept. Throws Error(invalid_argument) where the folder holds shards of another request or another
// process is at it, and as for_each_document() does.
CorpusProgress tokenize_corpus(const TokenizeRequest& request);

// What rows need to know of a tokenizer.
TokenSetHeader token_set_header(const text::Tokenizer& tokenizer, uint64_t fingerprint,
                                const CorpusOptions& options);

}  // namespace tessera::data
