// Objects drawn on the pictures of `tessera data show`.
#pragma once

#include "tessera/data/annotated.h"
#include "tessera/report/pictures.h"

namespace tessera::cli {

// Tints masks, draws the boxes that are seen with their numbers, and names the numbers' classes in the
// caption. The picture is of three channels and of the view's size; the colors are those of the classes.
void draw_objects(report::Picture& picture, const data::AnnotatedImage& image, const data::View& view,
                  const std::vector<std::string>& class_names);

}  // namespace tessera::cli
