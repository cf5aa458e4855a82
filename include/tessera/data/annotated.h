// Images with the objects that they show: COCO's and Pascal VOC's annotations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/registry.h"
#include "tessera/data/encoded.h"
#include "tessera/data/run_length_mask.h"

namespace tessera::data {

struct AnnotatedObject {
  int64_t number = 1;  // among the annotations of its file, from 1
  int32_t label = 0;
  BoundingBox box = {};
  // A crowd of COCO, a difficult object of VOC: whether it is found counts neither for nor against a network.
  bool ignored = false;
  // Its mask: outlines (x, y, x, y, ...), or runs as of RunLengthMask; neither where it has none.
  std::vector<std::vector<float>> outlines = {};
  std::vector<uint32_t> runs = {};

  bool has_mask() const { return !outlines.empty() || !runs.empty(); }
};

struct AnnotatedImage {
  int64_t id = 0;    // COCO's; of VOC its place in the list
  std::string file;  // below the folder of images
  int64_t height = 0;
  int64_t width = 0;
  std::vector<AnnotatedObject> objects = {};
};

struct Annotations {
  std::vector<std::string> class_names = {};
  std::vector<AnnotatedImage> images = {};
  // Annotations that are broken and were left out, each with what is wrong with it.
  std::vector<std::string> broken = {};
  int64_t empty = 0;  // objects that were left out because their boxes have no area
};

struct AnnotationOptions {
  bool masks = true;              // else they are left out
  bool leave_out_broken = false;  // else one broken annotation is an error
  ImageLimits limits = {};        // of the images that are described
};

// COCO's JSON of instances: images, annotations and categories. Labels count the categories in the order of
// their numbers. `name` stands in the messages. Throws Error(invalid_file) where the text is no such JSON, a
// file's name leads out of its folder, or two images or categories have one number; of an annotation that is
// broken (an image or category that is not there, a box that is none, a mask that is not its image's), unless
// these are left out.
Annotations parse_coco(std::string_view json, const std::string& name, const AnnotationOptions& options = {});

// Pascal VOC's XML of one image, whose objects are of these classes; xmin and ymin count from 1, and xmax and
// ymax are of the last pixels inside. Adds the image and what is broken to `annotations`. Throws as
// parse_coco(), Error(unsupported) where this build has no reader of XML.
void parse_voc(std::string_view xml, const std::string& name, const AnnotationOptions& options,
               Annotations& annotations);
// aeroplane, bicycle, ... (Everingham et al., "The Pascal visual object classes challenge", 2010).
std::vector<std::string> voc_class_names();

// The mask of an object of an image. Throws Error(invalid_file) where an outline leaves the image or is
// longer than can be drawn.
RunLengthMask mask_of(const AnnotatedImage& image, const AnnotatedObject& object);

// Encoded images with their annotations; as samples of one class they have the label -1.
class AnnotatedSamples : public EncodedSamples {
 public:
  // `folder` holds the images. Throws Error(invalid_file) where there are none, Error(io) where there is no
  // such folder.
  AnnotatedSamples(const std::filesystem::path& folder, Annotations annotations);

  int64_t size() const override { return std::ssize(annotations_.images); }
  int32_t label(int64_t /*index*/) const override { return -1; }
  std::string name(int64_t index) const override { return (folder_ / image(index).file).string(); }
  const std::vector<std::string>& class_names() const override { return annotations_.class_names; }
  // Refuses links out of the folder, too.
  std::vector<std::byte> bytes(int64_t index) const override;

  const AnnotatedImage& image(int64_t index) const { return annotations_.images[static_cast<size_t>(index)]; }
  const Annotations& annotations() const { return annotations_; }
  // The decoder of a sample's bytes. Throws Error(invalid_file) as EncodedImage does, and where the image is
  // of another size than its annotations.
  EncodedImage open(int64_t index, std::span<const std::byte> bytes, const ImageLimits& limits = {}) const;

 private:
  std::filesystem::path folder_;  // canonical
  Annotations annotations_;
};

// COCO's folder: annotations/instances_NAME.json, whose NAME begins with "train", or with one of "val",
// "validation" and "test"; where there is one file alone, a share of its images is held out. Images lie in
// NAME, images/NAME, images, or the folder itself: the first of these that is there. Throws Error(io) naming
// what cannot be read, else as parse_coco().
std::shared_ptr<const AnnotatedSamples> open_coco(const std::filesystem::path& folder,
                                                  const SplitOptions& split = {},
                                                  const AnnotationOptions& options = {});

// VOC's folder: Annotations, JPEGImages, and ImageSets/Main/train.txt and val.txt or test.txt, the names of
// the images of each part; without them a share of all is held out. classes.txt, a name a line, if there are
// other classes than VOC's. SegmentationObject/NAME.png, where there is one, has the masks. An annotation
// that cannot be read leaves its image out, where those are left out.
std::shared_ptr<const AnnotatedSamples> open_voc(const std::filesystem::path& folder,
                                                 const SplitOptions& split = {},
                                                 const AnnotationOptions& options = {});

// Kinds of annotated images by name.
struct AnnotatedSetDescription {
  std::string name;
  std::string documentation;  // one line
  std::function<std::shared_ptr<const AnnotatedSamples>(
      const std::filesystem::path& folder, const SplitOptions& split, const AnnotationOptions& options)>
      open;
  std::function<bool(const std::filesystem::path& folder)> fits;  // whether it looks like one of this kind
  // Whether such a folder has a part of its own for the split.
  std::function<bool(const std::filesystem::path& folder, Split split)> has_part;
};
Registry<AnnotatedSetDescription>& annotated_sets();
struct AnnotatedSetRegistration {
  explicit AnnotatedSetRegistration(AnnotatedSetDescription description) {
    annotated_sets().add(std::move(description));
  }
};

// The kind that a folder looks like; null: none.
const AnnotatedSetDescription* annotated_kind(const std::filesystem::path& folder);

}  // namespace tessera::data
