// BERT as recipes ask for it: the section [model].
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/tensor.h"
#include "tessera/models/bert.h"

namespace tessera::tasks {

std::vector<Option> bert_options();
// For so many tokens. Throws as models::read_bert_config(), and Error(invalid_argument) where its network has
// less.
models::BertConfig bert_of(const Options& settings, int64_t vocabulary);
// Heads that do not divide the width, rows (data.tokens) longer than there are positions.
std::vector<Contradiction> check_bert(const Options& settings);
// A workload's starting_weights, of files of any form.
std::function<std::map<std::string, Tensor>(const std::filesystem::path& path)> starting_bert(
    const models::BertConfig& network, models::BertForm form);

}  // namespace tessera::tasks
