// Rows of token shards as recipes ask for them, for whichever task that reads rows of "tokens".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "tessera/base/option.h"
#include "tessera/data/token_rows.h"
#include "tessera/data/token_shards.h"
#include "tessera/train/workload.h"

namespace tessera::tasks {

// Rows of data.tokens tokens, of which data.test_share are tested on, in batches as the recipe says.
std::shared_ptr<const data::Source> token_rows(std::shared_ptr<const data::TokenSet> set,
                                               const Options& settings, data::TokenRowPart part,
                                               data::TokenRowKind kind = data::TokenRowKind::joined);
// Without padding, that a batch of those that are trained on holds at most.
int64_t most_tokens(std::shared_ptr<const data::TokenSet> set, const Options& settings,
                    data::TokenRowKind kind);
// Trains on such rows and tests on the others; named after data.path.
train::Workload token_workload(nn::Task task, std::shared_ptr<const data::TokenSet> set,
                               train::EvaluatorMaker evaluator, const Options& settings,
                               data::TokenRowKind kind);
// The first rows that are tested on, as many as people look at, by field.
Feeds test_rows_of(const std::shared_ptr<const data::TokenSet>& set, const Options& settings,
                   data::TokenRowKind kind = data::TokenRowKind::joined);
// How people read a token, by the tokenizer that lies with the shards; its number where there is none that
// can be read.
std::function<std::string(int64_t token)> token_text(const std::filesystem::path& folder);

}  // namespace tessera::tasks
