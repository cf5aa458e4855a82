#include "tasks/token_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/text/tokenizer.h"

#include "tasks/prefetch.h"

namespace tessera::tasks {
namespace {

data::TokenRowOptions row_options(const Options& settings, data::TokenRowKind kind, data::TokenRowPart part) {
  const Prefetch prefetch = prefetch_of(settings);
  const bool training = part == data::TokenRowPart::training;
  return {.kind = kind,
          .length = settings.integer("data.tokens"),
          .packed = settings.get_or<int64_t>("data.packed", 1),
          .even_batches = training && settings.get_or("data.unpadded", false),
          .part = part,
          .test_share = settings.real("data.test_share"),
          .batch_size = settings.integer("train.batch"),
          .shuffle = training && settings.boolean("data.shuffle"),
          .drop_last = training,
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .workers = prefetch.workers,
          .prefetch = prefetch.batches};
}

}  // namespace

std::shared_ptr<const data::Source> token_rows(std::shared_ptr<const data::TokenSet> set,
                                               const Options& settings, data::TokenRowPart part,
                                               data::TokenRowKind kind) {
  return std::make_shared<data::TokenRows>(std::move(set), row_options(settings, kind, part));
}

int64_t most_tokens(std::shared_ptr<const data::TokenSet> set, const Options& settings,
                    data::TokenRowKind kind) {
  return data::TokenRows(std::move(set), row_options(settings, kind, data::TokenRowPart::training))
      .most_tokens();
}

train::Workload token_workload(nn::Task task, std::shared_ptr<const data::TokenSet> set,
                               train::EvaluatorMaker evaluator, const Options& settings,
                               data::TokenRowKind kind) {
  const auto rows = [set, settings, kind](data::TokenRowPart part) {
    return token_rows(set, settings, part, kind);
  };
  return {.task = std::move(task),
          .data = std::filesystem::path(settings.text("data.path")).filename().string(),
          .training = [rows] { return rows(data::TokenRowPart::training); },
          .test = [rows, evaluator = std::move(evaluator)]() -> train::TestSet {
            return {rows(data::TokenRowPart::test), evaluator};
          }};
}

Feeds test_rows_of(const std::shared_ptr<const data::TokenSet>& set, const Options& settings,
                   data::TokenRowKind kind) {
  constexpr int64_t kLooked = 1024;
  data::TokenRowOptions options = row_options(settings, kind, data::TokenRowPart::test);
  // A batch of them all, made when it is asked for.
  options.batch_size = std::min(data::TokenRows(set, options).size(), kLooked);
  options.workers = 0;
  return data::TokenRows(set, options).open({})->next()->fields;
}

std::function<std::string(int64_t token)> token_text(const std::filesystem::path& folder) {
  try {
    const text::Tokenizer tokenizer = text::read_tokenizer(folder / "tokenizer");
    return [tokenizer](int64_t token) {
      return std::string(tokenizer.token(static_cast<int32_t>(token))) + " ";
    };
  } catch (const Error& error) {
    log_warning("tokens are shown as numbers: {}", error.what());
    return [](int64_t token) { return fmt::format("{} ", token); };
  }
}

}  // namespace tessera::tasks
