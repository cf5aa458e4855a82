#include "data/tokens/corpus.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

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

int64_t line_number(std::string_view text, size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n');
}

}  // namespace

Corpus::Corpus(const std::vector<std::filesystem::path>& files, const CorpusOptions& options)
    : options_(options) {
  const auto code = ErrorCode::invalid_argument;
  require(!files.empty(), code, "no files of text are given");
  require(options.part_bytes > 0, code, "parts of {} bytes, expected 1 or more", options.part_bytes);
  for (const std::filesystem::path& file : files) files_.emplace_back(file);
  if (options.documents == DocumentKind::parallel) {
    require(files.size() == 2, code,
            "parallel text is two files, of which one is the translation; {} are given", files.size());
    plan_parallel();
    return;
  }
  for (size_t file = 0; file < files_.size(); ++file) plan_file(file);
}

std::string_view Corpus::text_of(size_t file) const {
  const std::span<const std::byte> bytes = files_[file].bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Corpus::plan_file(size_t file) {
  const std::string_view text = text_of(file);
  for (size_t begin = 0; begin < text.size();) {
    const size_t wanted = begin + static_cast<size_t>(options_.part_bytes);
    // The last byte of the part: a part ends with a document even where that ends exactly at its size.
    const size_t end =
        wanted >= text.size() ? text.size() : end_of_document(text, wanted - 1, options_.documents);
    parts_.push_back({{{file, begin, end}}});
    begin = end;
  }
}

void Corpus::plan_parallel() {
  const std::string_view first = text_of(0);
  const std::string_view second = text_of(1);
  size_t a = 0;
  size_t b = 0;
  while (a < first.size() && b < second.size()) {
    CorpusPart part{{{0, a, a}, {1, b, b}}};
    while (a < first.size() && b < second.size() &&
           a - part.ranges[0].begin < static_cast<size_t>(options_.part_bytes)) {
      next_line(first, a);
      next_line(second, b);
    }
    part.ranges[0].end = a;
    part.ranges[1].end = b;
    parts_.push_back(part);
  }
  require(a == first.size() && b == second.size(), ErrorCode::invalid_file,
          "{} has {} lines more than {}: lines of parallel text belong together",
          files_[a == first.size() ? 1 : 0].path().string(),
          a == first.size() ? std::count(second.begin() + static_cast<int64_t>(b), second.end(), '\n')
                            : std::count(first.begin() + static_cast<int64_t>(a), first.end(), '\n'),
          files_[a == first.size() ? 0 : 1].path().string());
}

void Corpus::visit_json(std::string_view line, const CorpusPart::Range& range, const char* begin,
                        const TextVisitor& visitor) const {
  using Json = nlohmann::json;
  const Json json = Json::parse(line, nullptr, false);
  const auto field = json.is_object() ? json.find(options_.field) : json.end();
  if (json.is_object() && field != json.end() && field->is_string())
    return visitor({field->get_ref<const std::string&>()});
  const size_t at = range.begin + static_cast<size_t>(line.data() - begin);
  fail(ErrorCode::invalid_file, "{}, line {}: {}", files_[range.file].path().string(),
       line_number(text_of(range.file), at),
       json.is_discarded() ? "no JSON" : fmt::format("no object with a text '{}'", options_.field));
}

void Corpus::visit(const CorpusPart& part, const TextVisitor& visitor) const {
  // Copies: a file that becomes shorter meanwhile is an error then, and not the end of the process.
  std::vector<std::string> texts;
  for (const CorpusPart::Range& range : part.ranges) {
    std::string& text = texts.emplace_back(range.end - range.begin, '\0');
    files_[range.file].copy(range.begin, std::as_writable_bytes(std::span(text)));
  }
  const std::string_view text = texts[0];
  switch (options_.documents) {
    case DocumentKind::paragraph:
      return visit_paragraphs(text, visitor);
    case DocumentKind::file:
      if (!is_blank(text)) visitor({text});
      return;
    case DocumentKind::line:
    case DocumentKind::json_lines:
      for (size_t at = 0; at < text.size();) {
        const std::string_view line = next_line(text, at);
        if (is_blank(line)) continue;
        options_.documents == DocumentKind::line ? visitor({line})
                                                 : visit_json(line, part.ranges[0], text.data(), visitor);
      }
      return;
    case DocumentKind::parallel:
      break;
  }
  for (size_t a = 0, b = 0; a < texts[0].size() && b < texts[1].size();) {
    const std::string_view source = next_line(texts[0], a);
    const std::string_view target = next_line(texts[1], b);
    if (!is_blank(source) && !is_blank(target)) visitor({source, target});
  }
}

void for_each_document(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                       const TextVisitor& visit) {
  const Corpus corpus(files, options);
  for (const CorpusPart& part : corpus.parts()) corpus.visit(part, visit);
}

}  // namespace tessera::data
