// Networks in files, beside tessera/tessera.h: read, run and written in the ONNX format. Where its reader is
// installed; a program links Tessera::onnx too.
#pragma once

#include "tessera/onnx/onnx.h"
#include "tessera/onnx/save.h"
#include "tessera/program/runner.h"
