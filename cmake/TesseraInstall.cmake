# What `cmake --install` puts where, and the package that find_package(Tessera) reads.
include(CMakePackageConfigHelpers)
set(TESSERA_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Tessera")

install(TARGETS tessera EXPORT TesseraTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS tessera_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET tessera_cpu)
  # Plug-ins are looked for beside the library. Their oneDNN goes with them: no distribution has this version.
  install(TARGETS tessera_cpu LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(IMPORTED_RUNTIME_ARTIFACTS DNNL::dnnl LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET tessera_onnx)
  set_target_properties(tessera_onnx PROPERTIES EXPORT_NAME onnx)
  install(TARGETS tessera_onnx EXPORT TesseraTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(TARGET tessera_cuda)
  install(TARGETS tessera_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

if(TARGET tessera_parquet)
  # Arrow's libraries go with it, as oneDNN does.
  install(TARGETS tessera_parquet LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES ${ARROW_LIBRARIES} DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

if(TARGET tessera_mpi)
  install(TARGETS tessera_mpi LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

tessera_install_headers()
install(DIRECTORY "${CMAKE_SOURCE_DIR}/recipes" DESTINATION "${CMAKE_INSTALL_DATADIR}/tessera"
        FILES_MATCHING PATTERN "*.toml")

install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION "${TESSERA_CMAKE_DIR}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/TesseraConfig.cmake.in"
                              "${CMAKE_BINARY_DIR}/TesseraConfig.cmake"
                              INSTALL_DESTINATION "${TESSERA_CMAKE_DIR}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/TesseraConfig.cmake" "${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake"
        DESTINATION "${TESSERA_CMAKE_DIR}")
