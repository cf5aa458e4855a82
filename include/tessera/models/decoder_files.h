// Decoders in the files of transformers: weights as safetensors, and config.json beside them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/models/decoder.h"

namespace tessera::models {

// The weights by the names of decoder_variables(config), fp32, of a file, of several with an index, or of a
// folder that holds either (data::SafetensorsParts). The names of GPT2Model and LlamaModel, without
// `transformer.` or `model.` before them, are known, and so is what older files hold beside weights: masks of
// attention, frequencies of rotary positions, and a copy of a tied table, which must be equal to it. Throws
// Error(io), and Error(invalid_file) naming the tensor that is missing, of another shape, of no such network,
// or no such copy.
std::map<std::string, Tensor> load_decoder(const std::filesystem::path& path, const DecoderConfig& config);
// As transformers' save_pretrained writes them. Throws Error(invalid_argument) naming the weight that is
// missing or of another shape, Error(io).
void save_decoder(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
                  const DecoderConfig& config);

// config.json, of the `model_type` gpt2 or llama. Throws Error(io); Error(invalid_file) where a number is
// missing or none; Error(unsupported) for another network, activation or scaling of positions.
DecoderConfig read_decoder_config(const std::filesystem::path& path);
// Of a config.json: the token that texts begin with, and those that end them. What is beyond the vocabulary
// is left out. Throws as read_decoder_config().
struct DecoderTokens {
  std::optional<int32_t> begin;
  std::vector<int32_t> ends;
};
DecoderTokens read_decoder_tokens(const std::filesystem::path& path);
void write_decoder_config(const std::filesystem::path& path, const DecoderConfig& config);

}  // namespace tessera::models
