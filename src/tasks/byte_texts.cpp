// Text whose tokens are the bytes of files.
#include "tessera/data/text.h"
#include "tessera/tasks/texts.h"

#include "tasks/data_kind.h"
#include "tasks/text_data.h"

namespace tessera::tasks {
namespace {

constexpr int64_t kBytes = 256;

Tensor rows_of_bytes(const Options& settings) {
  return data::read_byte_windows(settings.text("data.path"), settings.integer("data.tokens"));
}

class ByteTexts : public TextsInMemory {
 public:
  explicit ByteTexts(const Options& settings)
      : TextsInMemory(settings, [settings] { return rows_of_bytes(settings); }),
        path_(settings.text("data.path")) {}

  int64_t vocabulary() const override { return kBytes; }
  std::shared_ptr<const data::TokenText> long_text() const override { return data::byte_text(path_); }
  TextCoding coding() const override {
    return {.start = {'\n'},
            .tokens =
                [](std::string_view text) {
                  std::vector<int32_t> tokens;
                  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
                  return tokens;
                },
            .text =
                [](std::span<const int32_t> tokens) {
                  std::string text;
                  for (const int32_t token : tokens) text += static_cast<char>(token);
                  return text;
                }};
  }
  std::function<std::string(int64_t token)> shown() const override { return shown_byte; }

 private:
  std::string path_;
};

const TextRegistration kRegistration(
    {.name = "bytes",
     .documentation = "the bytes of text files",
     .options = {path_option("A text file, or a folder of them; of `tokens` the folder of the shards")},
     .open = [](const Options& settings) { return std::make_shared<const ByteTexts>(settings); },
     .check = check_path});

}  // namespace
}  // namespace tessera::tasks
