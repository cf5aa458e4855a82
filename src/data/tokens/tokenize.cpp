#include "tessera/data/tokenize.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file_lock.h"

#include "data/tokens/corpus.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kPlan = "plan.json";
constexpr uint64_t kLargestPlan = uint64_t{1} << 26;

std::string shard_name(size_t part) {
  return fmt::format("{:05}.tokens", part);
}

// Whatever decides what the shards hold: a run goes on where an earlier one of the same plan stopped.
std::string plan_of(const TokenizeRequest& request, const Corpus& corpus) {
  Json files = Json::array();
  for (const Corpus::File& file : corpus.files()) {
    std::error_code ignored;
    const auto changed = fs::last_write_time(file.path, ignored).time_since_epoch().count();
    files.push_back({{"name", file.path.filename().string()}, {"bytes", file.size}, {"changed", changed}});
  }
  const Json plan = {{"version", 1},
                     {"tokenizer", static_cast<int64_t>(request.fingerprint)},
                     {"documents", static_cast<int>(request.options.documents)},
                     {"field", request.options.field},
                     {"part_bytes", request.options.part_bytes},
                     {"files", files}};
  return plan.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void settle_plan(const fs::path& folder, const std::string& plan) {
  std::error_code ignored;
  if (fs::exists(folder / kPlan, ignored)) {
    require(read_text_file(folder / kPlan, kLargestPlan) == plan, ErrorCode::invalid_argument,
            "{}: holds tokens of other files, of another tokenizer or of other options; give another folder, "
            "or remove it",
            folder.string());
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    require(entry.path().extension() != ".tokens", ErrorCode::invalid_argument,
            "{}: holds {}, of which no {} says what it is; give another folder, or remove it",
            folder.string(), entry.path().filename().string(), kPlan);
  }
  write_file(folder / kPlan, plan);
}

// The parts, taken in turn by threads.
class Tokenizing {
 public:
  Tokenizing(const TokenizeRequest& request, const Corpus& corpus)
      : request_(request),
        corpus_(corpus),
        header_(token_set_header(request.tokenizer, request.fingerprint, request.options)),
        entries_(corpus.parts().size()) {
    progress_.all_parts = std::ssize(entries_);
  }

  CorpusProgress run() {
    const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const int64_t wanted = request_.options.threads > 0 ? request_.options.threads : cores;
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < std::min(wanted, progress_.all_parts); ++i) {
      try {
        threads.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // those that could be had do the work
      }
    }
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (progress_.parts == progress_.all_parts) write_token_set(request_.folder, header_, entries_);
    return progress_;
  }

 private:
  bool ended() const { return failed_ || (request_.stop != nullptr && *request_.stop); }

  void work() {
    while (!ended()) {
      const size_t part = next_++;
      if (part >= entries_.size()) return;
      try {
        finish(part);
      } catch (...) {
        failed_ = true;
        const std::lock_guard lock(mutex_);
        if (failure_ == nullptr) failure_ = std::current_exception();
      }
    }
  }

  void finish(size_t part) {
    const fs::path path = request_.folder / shard_name(part);
    std::error_code ignored;
    const bool kept = fs::exists(path, ignored);
    if (!kept) tokenize(corpus_.parts()[part], path);
    const TokenShard shard(path);
    entries_[part] = {shard_name(part), shard.documents(), shard.tokens()};
    const std::lock_guard lock(mutex_);
    ++progress_.parts;
    progress_.kept_parts += kept ? 1 : 0;
    for (const CorpusPart::Range& range : corpus_.parts()[part].ranges)
      progress_.bytes += kept ? 0 : static_cast<int64_t>(range.bytes);
    progress_.documents += shard.documents();
    progress_.tokens += shard.tokens();
    if (request_.progress) request_.progress(progress_);
  }

  void tokenize(const CorpusPart& part, const fs::path& path) const {
    TokenDocuments documents;
    corpus_.visit(part, [&](const std::vector<std::string_view>& texts) {
      for (const std::string_view text : texts) {
        request_.tokenizer.append_tokens(text, documents.tokens);
        documents.ends.push_back(std::ssize(documents.tokens));
      }
    });
    write_token_shard(
        path, documents,
        {.fields = header_.fields, .vocabulary = header_.vocabulary, .tokenizer = header_.tokenizer});
  }

  const TokenizeRequest& request_;
  const Corpus& corpus_;
  const TokenSetHeader header_;
  std::vector<TokenSetEntry> entries_;  // each of the thread that took its part
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards what follows
  CorpusProgress progress_;
  std::exception_ptr failure_;
};

}  // namespace

TokenSetHeader token_set_header(const text::Tokenizer& tokenizer, uint64_t fingerprint,
                                const CorpusOptions& options) {
  const auto first_of = [&](std::initializer_list<const char*> tokens) -> std::optional<int32_t> {
    for (const char* token : tokens) {
      if (const std::optional<int32_t> id = tokenizer.id_of(token)) return id;
    }
    return std::nullopt;
  };
  return {.vocabulary = tokenizer.vocabulary_size(),
          .tokenizer = fingerprint,
          .fields = options.documents == DocumentKind::parallel ? 2 : 1,
          .begin = first_of({"[CLS]", "<s>"}),
          .separator = first_of({"[SEP]", "</s>", "<|endoftext|>"}),
          .padding = first_of({"[PAD]", "<pad>"}),
          .mask = first_of({"[MASK]", "<mask>"})};
}

CorpusProgress tokenize_corpus(const TokenizeRequest& request) {
  const Corpus corpus(request.files, request.options);
  require(!corpus.parts().empty(), ErrorCode::invalid_file, "{}: the files are empty",
          request.files.front().string());
  make_folder(request.folder);
  const std::optional<FileLock> lock = FileLock::try_lock(request.folder / "lock");
  require(lock.has_value(), ErrorCode::invalid_argument, "{}: another process writes tokens there ({})",
          request.folder.string(), FileLock::holder(request.folder / "lock"));
  settle_plan(request.folder, plan_of(request, corpus));
  return Tokenizing(request, corpus).run();
}

}  // namespace tessera::data
