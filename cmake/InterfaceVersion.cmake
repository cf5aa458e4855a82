# cmake -DHEADERS=tessera/a.h,tessera/b.h -DFOLDER=include -DOUTPUT=file.h -P InterfaceVersion.cmake: a header with a number
# of what those say. Comments and white space are left out, and so is what follows two slashes in a text in quotes, on which
# no layout depends.
set(TEXT "")
string(REPLACE "," ";" HEADERS "${HEADERS}")
list(SORT HEADERS)
foreach(HEADER IN LISTS HEADERS)
  file(READ "${FOLDER}/${HEADER}" CONTENTS)
  string(REGEX REPLACE "//[^\n]*" "" CONTENTS "${CONTENTS}")
  string(REGEX REPLACE "[ \t\r\n]" "" CONTENTS "${CONTENTS}")
  string(APPEND TEXT "${HEADER}\n${CONTENTS}\n")
endforeach()
string(SHA256 HASH "${TEXT}")
string(SUBSTRING "${HASH}" 0 12 VERSION)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// What a plug-in says that it was built against (tessera/compile/backend.h): made of the interface's text.
#pragma once

#define TESSERA_INTERFACE_VERSION "@VERSION@"
]])
