// Any text has the same documents whatever the size of its parts, or is refused with an Error. The first byte
// chooses what a document is, and the size.
#include <cstdlib>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/tokenize.h"

#include "fuzz.h"
#include "input_file.h"

namespace {

using namespace tessera;

// A refusal in the place of the document that is none.
std::vector<std::string> documents_of(const std::string& path, data::CorpusOptions options,
                                      int64_t part_bytes) {
  options.part_bytes = part_bytes;
  std::vector<std::string> documents;
  try {
    data::for_each_document({path}, options, [&](const std::vector<std::string_view>& texts) {
      if (texts.size() != 1) std::abort();
      documents.emplace_back(texts.front());
    });
  } catch (const Error& error) {
    documents.emplace_back(error.what());
  }
  return documents;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr data::DocumentKind kKinds[] = {data::DocumentKind::json_lines, data::DocumentKind::line,
                                           data::DocumentKind::paragraph, data::DocumentKind::file};
  const InputFile file(data + 1, size - 1);
  const data::CorpusOptions options{.documents = kKinds[data[0] % 4]};
  const int64_t part_bytes = 1 + data[0] / 4;
  if (documents_of(file.path(), options, part_bytes) != documents_of(file.path(), options, int64_t{1} << 20))
    std::abort();
  return 0;
}
