// BERT in the files of transformers: weights as safetensors, and config.json beside them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tessera/base/tensor.h"
#include "tessera/models/bert.h"

namespace tessera::models {

// The weights of a file, of several with an index, or of a folder that holds either (data::SafetensorsParts),
// by the names of bert_variables(config, form), fp32. The names of BertModel, with or
// without `bert.` before them, are known, and so are older files: a LayerNorm's gamma and beta, places that
// are numbered (position_ids), and copies of the words' table and its bias (cls.predictions.decoder), which
// must be equal to what they are copies of. Throws Error(io), and Error(invalid_file) naming the tensor that
// is missing, of another shape, of no such network, or no such copy.
std::map<std::string, Tensor> load_bert(const std::filesystem::path& path, const BertConfig& config,
                                        BertForm form = BertForm::pretraining);
// The same of a file of any form, to start a network of this one from: other heads are left out, and so are
// this one's head and pooler where the file has none. Throws as load_bert().
std::map<std::string, Tensor> load_pretrained_bert(const std::filesystem::path& path,
                                                   const BertConfig& config, BertForm form);
// As transformers' save_pretrained writes them. What the form has no room for, such as the heads beside an
// encoder, is left out. Throws Error(invalid_argument) naming the weight that is missing or of another shape,
// Error(io).
void save_bert(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
               const BertConfig& config, BertForm form = BertForm::pretraining);

// config.json. Throws Error(io); Error(invalid_file) where a number is missing or none, or labels are not
// numbered from 0 on; Error(unsupported) for another network, activation, kind of positions, or untied words.
BertConfig read_bert_config(const std::filesystem::path& path);
void write_bert_config(const std::filesystem::path& path, const BertConfig& config,
                       BertForm form = BertForm::pretraining);

}  // namespace tessera::models
