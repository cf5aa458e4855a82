// Pascal VOC's masks.
#pragma once

#include <filesystem>

#include "tessera/data/annotated.h"

namespace tessera::data {

// Gives the objects of an image their masks of a file of SegmentationObject, whose numbers are theirs. Throws
// Error(io) where it cannot be read, Error(invalid_file) where it is no mask of the image.
void read_voc_masks(const std::filesystem::path& file, AnnotatedImage& image);

}  // namespace tessera::data
