// What a classifier says of images, for a terminal.
#include <fmt/format.h>

#include "tessera/tasks/image_classification.h"

#include "tasks/drawing.h"
#include "tasks/likeliest.h"

namespace tessera::tasks {
namespace {

report::Picture picture_of(const Tensor& images, int64_t row) {
  const Shape& shape = images.shape();
  const auto size = static_cast<size_t>(images.size() / shape[0]);
  const auto pixels = images.data<uint8_t>().subspan(static_cast<size_t>(row) * size, size);
  return {
      .pixels = {pixels.begin(), pixels.end()}, .height = shape[1], .width = shape[2], .channels = shape[3]};
}

class ClassificationText : public train::PredictionText {
 public:
  ClassificationText(std::vector<std::string> classes, std::vector<std::string> images)
      : classes_(std::move(classes)), images_(std::move(images)) {}

  std::string summary() const override {
    return labeled_ == 0 ? "" : fmt::format("{} of {} right\n", right_, labeled_);
  }

 private:
  std::string example(const train::Example& one) override {
    std::string text;
    const Feeds& fields = one.batch.fields;
    const auto images = fields.find("images");
    if (images != fields.end() && images->second.data_type() == DataType::uint8)
      text = draw(picture_of(images->second, one.row));
    const auto [best, confidence] = likeliest_class(one.outputs.at("logits"), one.row);
    const auto place = static_cast<size_t>(one.number);
    text += place < images_.size() ? images_[place] : fmt::format("image {}", one.number);
    text += fmt::format(": {} ({:.1f} %)", data::class_name(classes_, best), 100 * confidence);
    const auto labels = fields.find("labels");
    const auto label = labels != fields.end() ? static_cast<int64_t>(labels->second.at(one.row)) : -1;
    if (label >= 0) {
      ++labeled_;
      right_ += best == label ? 1 : 0;
      if (best != label) text += fmt::format(", wrong: it is {}", data::class_name(classes_, label));
    }
    return text + "\n\n";
  }

  std::vector<std::string> classes_;
  std::vector<std::string> images_;
  int64_t labeled_ = 0;
  int64_t right_ = 0;
};

}  // namespace

train::PredictionTextMaker classification_text(std::vector<std::string> class_names,
                                               std::vector<std::string> image_names) {
  return [classes = std::move(class_names), images = std::move(image_names)] {
    return std::make_unique<ClassificationText>(classes, images);
  };
}

}  // namespace tessera::tasks
