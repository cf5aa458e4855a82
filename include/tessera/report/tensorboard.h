// Event files that TensorBoard reads: https://github.com/tensorflow/tensorboard, event.proto and
// summary.proto.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tessera::report {

struct EventWriterOptions {
  // First step this run will write. A resumed run gives the step it resumes from: TensorBoard then drops what
  // an interrupted run wrote after its last checkpoint.
  int64_t first_step = 0;
  // Wall time in seconds since 1970; empty: the system's clock.
  std::function<double()> clock = {};
  // Tells files of one second apart; empty: host name and process number.
  std::string suffix = {};
};

// Writes one new file "events.out.tfevents.SECONDS.SUFFIX". Every fault of the file system throws Error(io)
// with the file's name, from the call that meets it; a full disk may show only at flush().
class EventWriter {
 public:
  // Creates the folder if need be.
  explicit EventWriter(const std::filesystem::path& folder, EventWriterOptions options = {});

  void add_scalar(std::string_view tag, double value, int64_t step);
  // Markdown, shown under TensorBoard's tab "text".
  void add_text(std::string_view tag, std::string_view text, int64_t step);

  // Hands everything to the operating system; call it once an epoch. The destructor flushes too, silently.
  void flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  [[noreturn]] void fail_to(const char* action) const;
  void write_record(std::string_view payload);
  std::string begin_event(int64_t step) const;

  std::function<double()> clock_;
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

// CRC-32C (Castagnoli), as TFRecord files use it.
uint32_t crc32c(std::string_view bytes);

}  // namespace tessera::report
