#include "cli/data_annotations.h"

#include <cmath>

#include <fmt/format.h>

namespace tessera::cli {

AnnotationFindings count_annotations(const data::AnnotatedSamples& samples) {
  AnnotationFindings findings;
  findings.of_class.resize(samples.class_names().size());
  for (const data::AnnotatedImage& image : samples.annotations().images) {
    findings.of_image.push_back(std::ssize(image.objects));
    findings.images_without_objects += image.objects.empty() ? 1 : 0;
    for (const data::AnnotatedObject& object : image.objects) {
      ++findings.objects;
      ++findings.of_class[static_cast<size_t>(object.label)];
      findings.ignored += object.ignored ? 1 : 0;
      findings.masks += object.has_mask() ? 1 : 0;
      findings.heights.push_back(std::llround(object.box.bottom - object.box.top));
      findings.widths.push_back(std::llround(object.box.right - object.box.left));
    }
  }
  return findings;
}

nlohmann::json to_json(const data::AnnotatedSamples& samples, const AnnotationFindings& findings) {
  nlohmann::json classes = nlohmann::json::object();
  for (size_t i = 0; i < findings.of_class.size(); ++i)
    classes[samples.class_names()[i]] = findings.of_class[i];
  return {{"boxes", findings.objects},
          {"classes", classes},
          {"ignored", findings.ignored},
          {"masks", findings.masks},
          {"images_without_boxes", findings.images_without_objects},
          {"boxes_of_an_image", spread(findings.of_image)},
          {"box_height", spread(findings.heights)},
          {"box_width", spread(findings.widths)},
          {"boxes_without_area", samples.annotations().empty},
          {"broken", samples.annotations().broken}};
}

void print(const data::AnnotatedSamples& samples, const AnnotationFindings& findings) {
  const data::Annotations& annotations = samples.annotations();
  const auto of_class = spread(findings.of_class);
  const auto of_image = spread(findings.of_image);
  const auto width = spread(findings.widths);
  const auto height = spread(findings.heights);
  fmt::print("  {} boxes, {} to {} of a class; {} count neither way (crowds, difficult objects); {} masks\n",
             findings.objects, of_class[0], of_class[2], findings.ignored, findings.masks);
  fmt::print("  boxes of an image: {} to {}, middle {}; {} images have none\n", of_image[0], of_image[2],
             of_image[1], findings.images_without_objects);
  fmt::print("  width of boxes {} to {}, middle {}; height {} to {}, middle {} pixels\n", width[0], width[2],
             width[1], height[0], height[2], height[1]);
  if (annotations.empty > 0) fmt::print("  {} boxes have no area and are left out\n", annotations.empty);
  fmt::print("  {} annotations are broken\n", annotations.broken.size());
  for (const std::string& message : annotations.broken) fmt::print("    {}\n", message);
}

}  // namespace tessera::cli
