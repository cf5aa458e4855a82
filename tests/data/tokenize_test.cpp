#include "tessera/data/tokenize.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using data::CorpusOptions;
using data::DocumentKind;
using Documents = std::vector<std::vector<std::string>>;

Documents documents_of(const std::vector<std::filesystem::path>& files, const CorpusOptions& options) {
  Documents documents;
  data::for_each_document(files, options, [&](const std::vector<std::string_view>& texts) {
    documents.emplace_back(texts.begin(), texts.end());
  });
  return documents;
}

// Each character is a token.
text::Tokenizer letters() {
  return text::parse_word_pieces("[UNK]\n[SEP]\na\n##a\nb\n##b\nc\n##c\n", "letters");
}

// Files of paragraphs "a", "aa", ... in which no part but the last has fewer bytes than it should.
std::string paragraphs(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i)
    text += std::string(static_cast<size_t>(i), 'a') + (i % 3 == 0 ? "\nb c\n \t\n\n" : "\n\n");
  return text;
}

TEST(Corpus, IsCutIntoDocumentsWhateverThePartsAre) {
  const TemporaryFolder folder;
  write_file(folder / "text", "one\ntwo\r\n\n \nthree\n\n\nfour");
  write_file(folder / "more", "five\n");
  write_file(folder / "none", "\n\n");
  const std::vector<std::filesystem::path> files{folder / "text", folder / "none", folder / "more"};
  for (const int64_t part : {1, 2, 3, 5, 8, 13, 1000}) {
    EXPECT_EQ(documents_of(files, {.part_bytes = part}),
              (Documents{{"one\ntwo"}, {"three"}, {"four"}, {"five"}}))
        << part;
    EXPECT_EQ(documents_of(files, {.documents = DocumentKind::line, .part_bytes = part}),
              (Documents{{"one"}, {"two"}, {"three"}, {"four"}, {"five"}}));
    EXPECT_EQ(documents_of(files, {.documents = DocumentKind::file, .part_bytes = part}).size(), 2u);
  }
  EXPECT_ERROR(documents_of({}, {}), ErrorCode::invalid_argument, "no files");
  EXPECT_ERROR(documents_of({folder / "missing"}, {}), ErrorCode::io, "missing");
}

TEST(Corpus, ReadsAFieldOfEachLine) {
  const TemporaryFolder folder;
  write_file(folder / "lines",
             "{\"text\": \"a\\nb\", \"n\": 1}\n\n{\"body\": \"no\", \"text\": \"\\u00e9\"}\n");
  const CorpusOptions options{.documents = DocumentKind::json_lines, .part_bytes = 10};
  EXPECT_EQ(documents_of({folder / "lines"}, options), (Documents{{"a\nb"}, {"\u00e9"}}));
  EXPECT_ERROR(documents_of({folder / "lines"}, {.documents = DocumentKind::json_lines, .field = "body"}),
               ErrorCode::invalid_file, "line 1", "'body'");
  write_file(folder / "broken", "{\"text\": \"a\"}\n{\"text\": \"a\"}\n{\"text\": \n");
  EXPECT_ERROR(documents_of({folder / "broken"}, options), ErrorCode::invalid_file, "broken, line 3",
               "no JSON");
}

TEST(Corpus, PairsLinesOfTwoFiles) {
  const TemporaryFolder folder;
  write_file(folder / "en", "one\ntwo\n\nfour\n");
  write_file(folder / "de", "eins\nzwei\ndrei\nvier");
  for (const int64_t part : {1, 5, 100}) {
    const CorpusOptions options{.documents = DocumentKind::parallel, .part_bytes = part};
    EXPECT_EQ(documents_of({folder / "en", folder / "de"}, options),
              (Documents{{"one", "eins"}, {"two", "zwei"}, {"four", "vier"}}));
  }
  write_file(folder / "fr", "un\ndeux\n");
  const CorpusOptions options{.documents = DocumentKind::parallel};
  EXPECT_ERROR(documents_of({folder / "en", folder / "fr"}, options), ErrorCode::invalid_file,
               "fr ends after 2 lines", "en");
  EXPECT_ERROR(documents_of({folder / "en"}, options), ErrorCode::invalid_argument, "two files");
}

TEST(TokenizeCorpus, WritesTheSameShardsWithAnyNumberOfThreads) {
  const TemporaryFolder folder;
  write_file(folder / "text", paragraphs(40));
  const text::Tokenizer tokenizer = letters();
  std::vector<int32_t> expected;
  for (const auto& document : documents_of({folder / "text"}, {}))
    tokenizer.append_tokens(document[0], expected);
  std::string first_shard;
  for (const int64_t threads : {1, 4}) {
    const auto shards = folder / ("shards" + std::to_string(threads));
    const data::CorpusProgress done =
        data::tokenize_corpus({.tokenizer = tokenizer,
                               .fingerprint = 5,
                               .files = {folder / "text"},
                               .folder = shards,
                               .options = {.part_bytes = 100, .threads = threads}});
    EXPECT_EQ(done.documents, 40);
    EXPECT_EQ(done.tokens, std::ssize(expected));
    EXPECT_GT(done.all_parts, 5);
    const data::TokenSet set(shards);
    set.verify();
    EXPECT_EQ(set.header().separator, 1);
    std::vector<int32_t> found;
    for (const data::TokenShard& shard : set.shards()) {
      std::vector<int32_t> tokens(static_cast<size_t>(shard.tokens()));
      shard.read(0, tokens);
      found.insert(found.end(), tokens.begin(), tokens.end());
    }
    EXPECT_EQ(found, expected);
    const std::string shard = read_text_file(shards / "00003.tokens");
    if (first_shard.empty()) first_shard = shard;
    EXPECT_EQ(shard, first_shard);
  }
}

TEST(TokenizeCorpus, GoesOnWhereItWasStopped) {
  const TemporaryFolder folder;
  write_file(folder / "text", paragraphs(40));
  const text::Tokenizer tokenizer = letters();
  std::atomic<bool> stop{false};
  data::TokenizeRequest request{
      .tokenizer = tokenizer,
      .files = {folder / "text"},
      .folder = folder / "shards",
      .options = {.part_bytes = 100, .threads = 1},
      .progress = [&](const data::CorpusProgress& progress) { stop = progress.parts == 3; },
      .stop = &stop};
  EXPECT_EQ(data::tokenize_corpus(request).parts, 3);
  EXPECT_ERROR(data::TokenSet(folder / "shards"), ErrorCode::io, "no tokens.json");
  request.progress = {};
  stop = false;
  const data::CorpusProgress done = data::tokenize_corpus(request);
  EXPECT_EQ(done.parts, done.all_parts);
  EXPECT_EQ(done.kept_parts, 3);
  data::TokenSet(folder / "shards").verify();

  request.options.part_bytes = 200;
  EXPECT_ERROR(data::tokenize_corpus(request), ErrorCode::invalid_argument, "other options",
               "another folder");
  request.options.part_bytes = 100;
  request.fingerprint = 1;
  EXPECT_ERROR(data::tokenize_corpus(request), ErrorCode::invalid_argument, "another tokenizer");
  std::filesystem::remove(folder / "shards" / "plan.json");
  EXPECT_ERROR(data::tokenize_corpus(request), ErrorCode::invalid_argument, "no plan.json");
}

TEST(TokenizeCorpus, EndsWithTheErrorOfADocument) {
  const TemporaryFolder folder;
  write_file(folder / "text", "{\"text\": \"a\"}\n{\"text\": \"a\"}\nbroken\n");
  const text::Tokenizer tokenizer = letters();
  EXPECT_ERROR(data::tokenize_corpus(
                   {.tokenizer = tokenizer,
                    .files = {folder / "text"},
                    .folder = folder / "shards",
                    .options = {.documents = DocumentKind::json_lines, .part_bytes = 10, .threads = 3}}),
               ErrorCode::invalid_file, "line 3");
  EXPECT_FALSE(std::filesystem::exists(folder / "shards" / "tokens.json"));
}

}  // namespace
}  // namespace tessera::testing
