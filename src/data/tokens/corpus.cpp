#include "data/tokens/corpus.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/data/parquet.h"

#include "data/parquet_columns.h"

namespace tessera::data {
namespace {

// The line at `at`, which is moved to the next, without its end.
std::string_view next_line(std::string_view text, size_t& at) {
  const size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  at = std::min(end + 1, text.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view line) {
  return std::all_of(line.begin(), line.end(), is_space);
}

// Where the document that `at` lies in ends, or the one before it.
size_t end_of_document(std::string_view text, size_t at, DocumentKind kind) {
  if (kind == DocumentKind::file) return text.size();
  next_line(text, at);
  while (kind == DocumentKind::paragraph && at < text.size() && !is_blank(next_line(text, at))) {
  }
  return at;
}

void visit_paragraphs(std::string_view text, const TextVisitor& visitor) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    size_t end = begin;
    while (at < text.size()) {
      const std::string_view line = next_line(text, at);
      if (is_blank(line)) break;
      end = static_cast<size_t>(line.data() + line.size() - text.data());
    }
    if (end > begin) visitor({text.substr(begin, end - begin)});
  }
}

void visit_pairs(std::string_view first, std::string_view second, const TextVisitor& visitor) {
  for (size_t a = 0, b = 0; a < first.size() && b < second.size();) {
    const std::string_view source = next_line(first, a);
    const std::string_view target = next_line(second, b);
    if (!is_blank(source) && !is_blank(target)) visitor({source, target});
  }
}

std::string_view text_of(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t bytes_of(const CorpusPart& part) {
  uint64_t bytes = 0;
  for (const CorpusPart::Range& range : part.ranges) bytes += range.bytes;
  return bytes;
}

size_t find_texts(const ParquetFile& file, const std::string& column, const std::string& name) {
  const size_t place = find_column(file, column, name);
  require(file.columns()[place].is_text, ErrorCode::invalid_argument,
          "{}: the column '{}' is {}, expected texts", name, column, file.columns()[place].type);
  return place;
}

}  // namespace

Corpus::Corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options)
    : options_(options) {
  const auto code = ErrorCode::invalid_argument;
  require(!files.empty(), code, "no files of text are given");
  require(options.part_bytes > 0, code, "parts of {} bytes, expected 1 or more", options.part_bytes);
  for (const std::filesystem::path& given : files) {
    const bool is_table = options.documents == DocumentKind::parquet;
    for (const std::filesystem::path& file : is_table ? parquet_files(given) : std::vector{given})
      files_.push_back({file, MappedFile(file).size()});
  }
  if (options.documents == DocumentKind::parallel) {
    require(files.size() == 2, code,
            "parallel text is two files, of which one is the translation; {} are given", files.size());
    plan_parallel();
    return;
  }
  for (size_t file = 0; file < files_.size(); ++file)
    options.documents == DocumentKind::parquet ? plan_row_groups(file) : plan_file(file);
}

void Corpus::plan_file(size_t file) {
  const MappedFile mapped(files_[file].path);
  const std::string_view text = text_of(mapped).substr(0, files_[file].size);
  for (size_t begin = 0; begin < text.size();) {
    const size_t wanted = begin + static_cast<size_t>(options_.part_bytes);
    // The last byte of the part: a part ends with a document even where that ends exactly at its size.
    const size_t end =
        wanted >= text.size() ? text.size() : end_of_document(text, wanted - 1, options_.documents);
    add({file, begin, end, end - begin});
    begin = end;
  }
}

void Corpus::plan_row_groups(size_t file) {
  const std::unique_ptr<ParquetFile> table = open_parquet(files_[file].path);
  const size_t column = find_texts(*table, options_.field, files_[file].path.string());
  for (int64_t group = 0; group < table->groups(); ++group) {
    const auto begin = static_cast<uint64_t>(group);
    add({file, begin, begin + 1, static_cast<uint64_t>(table->bytes(group, column))});
  }
}

// Small files share a part.
void Corpus::add(const CorpusPart::Range& range) {
  const bool fits =
      !parts_.empty() && bytes_of(parts_.back()) + range.bytes <= static_cast<uint64_t>(options_.part_bytes);
  (fits ? parts_.back() : parts_.emplace_back()).ranges.push_back(range);
}

void Corpus::plan_parallel() {
  const MappedFile first_file(files_[0].path);
  const MappedFile second_file(files_[1].path);
  const std::string_view first = text_of(first_file);
  const std::string_view second = text_of(second_file);
  const auto more = [&](size_t a, size_t b) { return a < first.size() && b < second.size(); };
  size_t a = 0;
  size_t b = 0;
  int64_t lines = 0;
  while (more(a, b)) {
    CorpusPart part{{{0, a, a}, {1, b, b}}};
    for (; more(a, b) && a - part.ranges[0].begin < static_cast<size_t>(options_.part_bytes); ++lines) {
      next_line(first, a);
      next_line(second, b);
    }
    part.ranges[0].end = a;
    part.ranges[1].end = b;
    for (CorpusPart::Range& range : part.ranges) range.bytes = range.end - range.begin;
    parts_.push_back(part);
  }
  require(a == first.size() && b == second.size(), ErrorCode::invalid_file,
          "{} ends after {} lines and {} goes on: lines of parallel text belong together",
          files_[a == first.size() ? 0 : 1].path.string(), lines,
          files_[a == first.size() ? 1 : 0].path.string());
}

// A copy: a file that becomes shorter meanwhile is an error then, and not the end of the process.
std::string Corpus::read(const CorpusPart::Range& range) const {
  std::string text(range.end - range.begin, '\0');
  MappedFile(files_[range.file].path).copy(range.begin, std::as_writable_bytes(std::span(text)));
  return text;
}

void Corpus::visit_json(std::string_view line, const CorpusPart::Range& range, uint64_t at,
                        const TextVisitor& visitor) const {
  using Json = nlohmann::json;
  const Json json = Json::parse(line, nullptr, false);
  const auto field = json.is_object() ? json.find(options_.field) : json.end();
  if (json.is_object() && field != json.end() && field->is_string())
    return visitor({field->get_ref<const std::string&>()});
  const std::string before = read({range.file, 0, range.begin + at});
  fail(ErrorCode::invalid_file, "{}, line {}: {}", files_[range.file].path.string(),
       1 + std::count(before.begin(), before.end(), '\n'),
       json.is_discarded() ? "no JSON" : fmt::format("no object with a text '{}'", options_.field));
}

void Corpus::visit_text(std::string_view text, const CorpusPart::Range& range,
                        const TextVisitor& visitor) const {
  if (options_.documents == DocumentKind::paragraph) return visit_paragraphs(text, visitor);
  if (options_.documents == DocumentKind::file) {
    if (!is_blank(text)) visitor({text});
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const std::string_view line = next_line(text, at);
    if (is_blank(line)) continue;
    options_.documents == DocumentKind::line ? visitor({line}) : visit_json(line, range, begin, visitor);
  }
}

void Corpus::visit_row_groups(const CorpusPart::Range& range, const TextVisitor& visitor) const {
  const std::unique_ptr<ParquetFile> table = open_parquet(files_[range.file].path);
  const size_t column = find_texts(*table, options_.field, files_[range.file].path.string());
  for (uint64_t group = range.begin; group < range.end; ++group) {
    table->visit(static_cast<int64_t>(group), column, [&](std::string_view cell) {
      if (!is_blank(cell)) visitor({cell});
    });
  }
}

void Corpus::visit(const CorpusPart& part, const TextVisitor& visitor) const {
  if (options_.documents == DocumentKind::parallel)
    return visit_pairs(read(part.ranges[0]), read(part.ranges[1]), visitor);
  for (const CorpusPart::Range& range : part.ranges) {
    options_.documents == DocumentKind::parquet ? visit_row_groups(range, visitor)
                                                : visit_text(read(range), range, visitor);
  }
}

void for_each_document(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                       const TextVisitor& visit) {
  const Corpus corpus(files, options);
  for (const CorpusPart& part : corpus.parts()) corpus.visit(part, visit);
}

}  // namespace tessera::data
