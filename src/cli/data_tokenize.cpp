// Learns tokenizers from text, and makes token shards of text.
#include <chrono>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/base/text.h"
#include "tessera/data/tokenize.h"
#include "tessera/text/training.h"

#include "cli/data_commands.h"
#include "cli/json.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

struct TokenizeArguments {
  std::vector<std::string> files;
  std::string folder;
  std::string tokenizer;
  std::string kind;    // of what is learned
  std::string verify;  // a folder of shards
  bool print = false;
  bool cased = false;
  bool quiet = false;
  data::CorpusOptions corpus;
  text::VocabularyOptions vocabulary;
};

const std::map<std::string, text::VocabularyKind> kKinds = {{"wordpiece", text::VocabularyKind::wordpiece},
                                                            {"bpe", text::VocabularyKind::byte_pairs}};
const std::map<std::string, data::DocumentKind> kDocuments = {
    {"paragraph", data::DocumentKind::paragraph}, {"line", data::DocumentKind::line},
    {"file", data::DocumentKind::file},           {"json", data::DocumentKind::json_lines},
    {"parquet", data::DocumentKind::parquet},     {"parallel", data::DocumentKind::parallel}};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<fs::path> paths_of(const TokenizeArguments& arguments) {
  return {arguments.files.begin(), arguments.files.end()};
}

void require_output(const TokenizeArguments& arguments) {
  require(!arguments.folder.empty(), ErrorCode::invalid_argument, "where to? Name a folder with --out");
}

void learn(const TokenizeArguments& arguments) {
  require_output(arguments);
  text::VocabularyOptions options = arguments.vocabulary;
  options.kind = kKinds.at(arguments.kind);
  options.lower_case = !arguments.cased;
  text::VocabularyLearner learner(options);
  int64_t documents = 0;
  data::for_each_document(paths_of(arguments), arguments.corpus,
                          [&](const std::vector<std::string_view>& texts) {
                            if (stop_flag()) throw Interrupted{};
                            for (const std::string_view text : texts) learner.add(text);
                            ++documents;
                          });
  const text::LearnedVocabulary learned = learner.learn();
  text::write_tokenizer(learned, arguments.folder);
  fmt::print("{} tokens learned from {} documents; the tokenizer is in {}\n", learned.tokens.size(),
             documents, arguments.folder);
}

void print_tokens(const TokenizeArguments& arguments, const text::Tokenizer& tokenizer) {
  data::for_each_document(
      paths_of(arguments), arguments.corpus, [&](const std::vector<std::string_view>& texts) {
        const text::EncodeOptions options{.offsets = true};
        const text::Encoding encoding = texts.size() == 2 ? tokenizer.encode_pair(texts[0], texts[1], options)
                                                          : tokenizer.encode(texts[0], options);
        auto offsets = nlohmann::json::array();
        for (const text::Span& span : encoding.offsets) offsets.push_back({span.begin, span.end});
        fmt::print("{}\n", dump_json({{"ids", encoding.ids},
                                      {"types", encoding.types},
                                      {"offsets", offsets},
                                      {"text", tokenizer.decode(encoding.ids)}}));
      });
}

// Of all bytes of the files that make a tokenizer what it is.
uint64_t fingerprint_of(const std::vector<fs::path>& files) {
  std::string all;
  for (const fs::path& file : files) all += read_text_file(file);
  return hash_name(all.data(), all.size());
}

// A line from time to time: shards of a large corpus take hours.
std::function<void(const data::CorpusProgress&)> progress_line(bool quiet) {
  if (quiet) return {};
  const double interval = ::isatty(STDERR_FILENO) != 0 ? 1 : 10;
  return [interval, began = seconds(), told = seconds()](const data::CorpusProgress& progress) mutable {
    const double now = seconds();
    if (now - told < interval) return;
    told = now;
    fmt::print(stderr, "part {} of {}, {} tokens, {}/s\n", progress.parts, progress.all_parts,
               progress.tokens, format_bytes(static_cast<double>(progress.bytes) / (now - began)));
  };
}

void tokenize(const TokenizeArguments& arguments, const text::Tokenizer& tokenizer) {
  require_output(arguments);
  const std::vector<fs::path> files = text::tokenizer_files(arguments.tokenizer);
  const double began = seconds();
  const data::CorpusProgress done = data::tokenize_corpus({.tokenizer = tokenizer,
                                                           .fingerprint = fingerprint_of(files),
                                                           .files = paths_of(arguments),
                                                           .folder = arguments.folder,
                                                           .options = arguments.corpus,
                                                           .progress = progress_line(arguments.quiet),
                                                           .stop = &stop_flag()});
  if (done.parts < done.all_parts) {
    fmt::print("stopped after {} of {} shards; the same command goes on there\n", done.parts, done.all_parts);
    throw Interrupted{};
  }
  // Whoever trains on tokens wants to read them: the tokenizer goes with its shards.
  const fs::path copy = fs::path(arguments.folder) / "tokenizer";
  make_folder(copy);
  for (const fs::path& file : files) write_file(copy / file.filename(), read_text_file(file));
  const std::string kept =
      done.kept_parts > 0 ? fmt::format(", {} of them there already", done.kept_parts) : "";
  fmt::print("{} tokens of {} documents in {} shards{}; {} of text in {:.1f} s\n", done.tokens,
             done.documents, done.all_parts, kept, format_bytes(static_cast<double>(done.bytes)),
             seconds() - began);
}

void verify(const std::string& folder) {
  const data::TokenSet set(folder);
  set.verify();
  fmt::print("{} tokens of {} documents in {} shards; all as they were written\n", set.tokens(),
             set.documents(), set.shards().size());
}

void run_tokenize(const TokenizeArguments& arguments) {
  const auto code = ErrorCode::invalid_argument;
  const int modes = (arguments.kind.empty() ? 0 : 1) + (arguments.tokenizer.empty() ? 0 : 1) +
                    (arguments.verify.empty() ? 0 : 1);
  require(modes == 1, code, "give one of --train KIND, --tokenizer PATH and --verify FOLDER");
  if (!arguments.verify.empty()) return verify(arguments.verify);
  require(!arguments.files.empty(), code, "no files of text are given");
  install_stop_handler();
  if (!arguments.kind.empty()) return learn(arguments);
  const text::Tokenizer tokenizer = text::read_tokenizer(arguments.tokenizer);
  arguments.print ? print_tokens(arguments, tokenizer) : tokenize(arguments, tokenizer);
}

void add_modes(CLI::App* command, TokenizeArguments& arguments) {
  command->add_option("files", arguments.files, "Files of text; of parquet also folders of them");
  command->add_option("-o,--out", arguments.folder, "Folder for the tokenizer or the shards");
  command->add_option("--train", arguments.kind, "Learn a tokenizer of this kind from the files")
      ->check(CLI::IsMember(std::vector<std::string>{"wordpiece", "bpe"}));
  command->add_option(
      "--tokenizer", arguments.tokenizer,
      "Tokenize with this one: a tokenizer.json, vocab.txt, merges.txt or .model, or their folder");
  command->add_flag("--print", arguments.print,
                    "Print ids, types and places of each document as JSON, write nothing");
  command->add_option("--verify", arguments.verify,
                      "Read all of the shards in this folder and hold their checksums");
  command->add_flag("--quiet", arguments.quiet, "No lines of progress");
}

void add_learning(CLI::App* command, TokenizeArguments& arguments) {
  text::VocabularyOptions& options = arguments.vocabulary;
  command->add_option("--vocabulary", options.size, "Tokens to learn, special ones included")
      ->capture_default_str();
  command
      ->add_option("--minimum-frequency", options.minimum_frequency,
                   "Pairs that are met less often are not joined")
      ->capture_default_str();
  command->add_flag("--cased", arguments.cased, "Keep case and accents (wordpiece)");
  command
      ->add_option(
          "--special", options.special_tokens,
          "Special tokens in the place of the kind's own: [PAD] [UNK] [CLS] [SEP] [MASK], or <|endoftext|>")
      ->delimiter(',');
}

void add_corpus(CLI::App* command, TokenizeArguments& arguments) {
  data::CorpusOptions& options = arguments.corpus;
  command
      ->add_option(
          "--documents", options.documents,
          "What a document is: paragraph, line, file, json (a field of the object on each line), parquet (a "
          "row of Parquet files), parallel (a line of each of two files)")
      ->transform(CLI::CheckedTransformer(kDocuments).description(""))
      ->default_str("paragraph");
  command
      ->add_option("--field", options.field,
                   "The field that holds the text, of json, or the column, of parquet")
      ->capture_default_str();
  command->add_option("--part", options.part_bytes, "Bytes of text for a shard")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--threads", options.threads, "As many as the machine runs, unless given")
      ->check(CLI::PositiveNumber);
}

void add_tokenize(CLI::App* command) {
  command->footer(
      "docs/text.md says what is read and written. Examples:\n"
      "  tessera data tokenize --train wordpiece --vocabulary 8000 book.txt -o tokenizer\n"
      "  tessera data tokenize --tokenizer tokenizer book.txt -o shards\n"
      "  tessera data tokenize --tokenizer tokenizer --documents parallel text.en text.de -o pairs\n"
      "Ctrl-C ends it after the shards that are under way; the same command goes on there.");
  auto arguments = std::make_shared<TokenizeArguments>();
  add_modes(command, *arguments);
  add_learning(command, *arguments);
  add_corpus(command, *arguments);
  command->callback([arguments] { run_tokenize(*arguments); });
}

const DataCommandRegistration kRegistration(
    {.name = "tokenize",
     .documentation = "Learn a tokenizer from text, or make token shards of text",
     .add = add_tokenize});

}  // namespace
}  // namespace tessera::cli
