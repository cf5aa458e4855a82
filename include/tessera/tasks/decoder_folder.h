// Networks that go on with text, as transformers leaves them in a folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "tessera/compile/device.h"
#include "tessera/train/generation.h"

namespace tessera::tasks {

// What train::continue_text() takes. The weights are on the device, in fp32, for as long as it is there.
struct TextNetwork {
  train::TextContinuation continuation;
  train::Serving serve;
};

// Of a folder with config.json (models::read_decoder_config()), model.safetensors or its parts with their
// index (models::load_decoder()), and the files of a tokenizer, of which a SentencePiece tokenizer.model goes
// before a tokenizer.json. Text ends at the `eos_token_id` of config.json, and without a prompt goes on from
// its `bos_token_id`. Computes in Device::training_precision() unless a precision is given. Throws as those
// functions and text::read_tokenizer(), and Error(invalid_file) for a tokenizer with more tokens than the
// network has.
TextNetwork open_decoder_folder(const std::filesystem::path& folder, const std::shared_ptr<Device>& device,
                                std::optional<Precision> precision = std::nullopt);

}  // namespace tessera::tasks
