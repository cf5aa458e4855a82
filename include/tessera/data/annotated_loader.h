// Annotated images as batches: pixels, and a bounded number of boxes, labels and masks for each image.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/data/anchors.h"
#include "tessera/data/annotated.h"
#include "tessera/data/examples.h"

namespace tessera::data {

// Which part of an image a batch shows.
enum class AnnotatedCrop : uint8_t {
  none,     // all of it
  resized,  // one of random_crop()
  overlap,  // one of random_overlap_crop()
};

// How annotated images become examples; what batches they come in, BatchOptions says.
struct AnnotatedExampleOptions {
  Shape image_shape = {300, 300, 3};  // [H, W, 1 or 3]; what is shown is resized to it, whatever its sides
  int64_t objects = 100;              // of an image at most; the first so many of it stay
  bool masks = false;                 // whether there are any in a batch
  AnchorTargets targets = {};         // what each anchor is to find; without anchors not in a batch
  AnnotatedCrop crop = AnnotatedCrop::none;
  RandomCropOptions resized_crop = {};
  OverlapCropOptions overlap_crop = {};
  VisibilityRule visibility = {};  // of boxes in a part
  bool mirror = false;             // every second image on average
  ResizeFilter filter = ResizeFilter::bilinear;
  BrokenSamples broken = BrokenSamples::fail;
  ImageLimits limits = {};
};

// Annotated images as a source. Fields, [batch, ...]; rows that only fill, and skipped ones, hold zeros, with
// the labels and ids -1, and no anchor of theirs is counted:
//   images        uint8 [H, W, C]
//   boxes         fp32  [objects, 4]: left, top, right, bottom in pixels of the batch's images
//   labels        int32 [objects]; -1 after the last object
//   ignored       bool  [objects]: crowds, and difficult objects
//   object_count  int32: how many of the rows of an image are objects; those stand first
//   image_ids     int64: AnnotatedImage::id
//   image_sizes   int32 [2]: height and width in the file, by which boxes are taken back
//   masks         uint8 [objects, H, W]: 1 inside; zeros of objects without a mask
//   anchor_labels int32 [anchors]: of the object that an anchor is to find, kBackground or kUncounted
//   anchor_boxes  fp32  [anchors, 4]: box_offsets() of that object, else zeros
// What is drawn depends on (seed, epoch, example) alone. Its remarks are of images that could not be read,
// and of those with more objects than a batch has room for.
class AnnotatedLoader : public ExampleBatches {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range, or when the data has not one
  // batch.
  AnnotatedLoader(std::shared_ptr<const AnnotatedSamples> samples, const BatchOptions& batching,
                  const AnnotatedExampleOptions& images = {});
};

}  // namespace tessera::data
