#include "tessera/report/progress.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace tessera::report {
namespace {

const ProgressState kState = {.epoch = 2,
                              .epochs = 5,
                              .step = 235,
                              .steps_per_epoch = 469,
                              .measures = {{"loss", 0.41234}, {"accuracy", 0.8512}},
                              .samples_per_second = 2345.6};

ProgressOptions of_classifier() {
  return {.metrics = {{.name = "accuracy", .percent = true}, {.name = "loss"}}, .samples = "images"};
}

// A Progress that writes to memory, by a clock that the test turns.
class Recorder {
 public:
  explicit Recorder(bool terminal, int columns = 80) {
    file_ = ::open_memstream(&text_, &size_);
    ProgressOptions options = of_classifier();
    options.output = file_;
    options.terminal = terminal;
    options.columns = columns;
    options.clock = [this] { return now; };
    progress_ = std::make_unique<Progress>(options);
  }
  ~Recorder() {
    progress_.reset();
    std::fclose(file_);
    std::free(text_);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Progress& operator*() { return *progress_; }
  std::string finish() {
    progress_.reset();
    return text();
  }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

  double now = 100;

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_ = nullptr;
  std::unique_ptr<Progress> progress_;
};

TEST(Progress, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(progress_line(kState, of_classifier(), 185, 200),
            "epoch 2/5  [##########..........]   50 %  loss 0.4123  accuracy 85.1 %  2346 images/s  3 min 05 "
            "s left");
  EXPECT_EQ(
      progress_line({.epoch = 1, .epochs = 1, .step = 0, .steps_per_epoch = 10}, of_classifier(), -1, 200),
      "epoch 1/1  [....................]    0 %");
}

// Data without epochs, and a task that names its samples otherwise.
TEST(Progress, CountsStepsWhereThereAreNoEpochs) {
  const ProgressOptions options{.metrics = {{.name = "next_sentence"}}, .samples = "packs"};
  EXPECT_EQ(progress_line({.epochs = 0,
                           .step = 30,
                           .steps_per_epoch = 120,
                           .measures = {{"next_sentence", 0.5}},
                           .samples_per_second = 12},
                          options, -1, 200),
            "step 30/120  [#####...............]   25 %  next sentence 0.5000  12 packs/s");
}

TEST(Progress, NeverExceedsTheTerminal) {
  for (int columns = 0; columns <= 120; ++columns) {
    EXPECT_LE(static_cast<int>(progress_line(kState, of_classifier(), 185, columns).size()), columns);
  }
  EXPECT_EQ(progress_line(kState, of_classifier(), 185, 50),
            "epoch 2/5   50 %  loss 0.4123  accuracy 85.1 %");
  EXPECT_EQ(progress_line(kState, of_classifier(), 185, 30), "epoch 2/5   50 %  loss 0.4123");
  EXPECT_EQ(progress_line(kState, of_classifier(), 185, 5), "epoch");
}

TEST(Progress, FormatsDurations) {
  EXPECT_EQ(format_duration(0.4), "0 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(3599), "59 min 59 s");
  EXPECT_EQ(format_duration(7620), "2 h 07 min");
  EXPECT_EQ(format_duration(-1), "0 s");
}

TEST(Progress, RedrawsOneLineOnATerminal) {
  Recorder recorder(true, 33);
  ProgressState state = kState;
  (*recorder).update(state);
  recorder.now += 0.05;
  (*recorder).update(state);  // too soon
  recorder.now += 0.06;
  ++state.step;
  (*recorder).update(state);
  (*recorder).finish_epoch({.epoch = 2, .measures = {{"loss", 0.4}}, .seconds = 12},
                           {{.name = "test", .results = {{"accuracy", 0.9}}}}, 5);
  const std::string text = recorder.finish();
  EXPECT_EQ(text,
            "\repoch 2/5   50 %  loss 0.4123\x1b[K"
            "\repoch 2/5   50 %  loss 0.4123\x1b[K"
            "\r\x1b[Kepoch 2/5  loss 0.4000\n")
      << text;
}

TEST(Progress, WritesPlainLinesElsewhere) {
  Recorder recorder(false);
  ProgressState state = kState;
  for (int i = 0; i < 25; ++i) {
    (*recorder).update(state);
    recorder.now += 1;
    state.step += 10;
  }
  (*recorder).finish_epoch({.epoch = 2,
                            .measures = {{"loss", 0.41}, {"accuracy", 0.85}},
                            .samples_per_second = 2300,
                            .seconds = 26},
                           {{.name = "test", .results = {{"loss", 0.39}, {"accuracy", 0.861}}}}, 5);
  const std::string text = recorder.finish();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);  // after 10 s, after 20 s, and the epoch
  EXPECT_NE(
      text.find(
          "epoch 2/5  loss 0.4100  accuracy 85.0 %  test loss 0.3900  test accuracy 86.1 %  2300 images/s  "
          "26 s\n"),
      std::string::npos)
      << text;
}

TEST(Progress, TellsTheTimeLeftFromThePace) {
  Recorder recorder(true, 200);
  ProgressState state = {.epoch = 1, .epochs = 3, .step = 40, .steps_per_epoch = 100};  // resumed at step 40
  (*recorder).update(state);
  recorder.now += 10;
  state.step += 20;
  (*recorder).update(state);
  EXPECT_TRUE(recorder.text().ends_with("  2 min 00 s left\x1b[K"))
      << recorder.text();  // 240 steps at 2 a second
}

TEST(Progress, LeavesTheCursorOnAFreshLine) {
  Recorder recorder(true);
  (*recorder).update(kState);
  EXPECT_EQ(recorder.finish().back(), '\n');
}

TEST(Progress, PrintsAboveTheLine) {
  Recorder recorder(true);
  (*recorder).update(kState);
  (*recorder).print("saved runs/a/last.safetensors");
  EXPECT_TRUE(recorder.text().ends_with("\r\x1b[Ksaved runs/a/last.safetensors\n"));
}

}  // namespace
}  // namespace tessera::report
