# Which headers are whose. tools/interfaces holds the lists against what the headers include; those for backends are not
# installed, and what is in none is this tree's own. Of a folder with a star all headers are meant.

# For those who write operators, kernels, fusion patterns and backends: what tessera/extend.h reaches.
set(TESSERA_EXTENSION_HEADERS
    tessera/base/clock.h
    tessera/base/data_type.h
    tessera/base/error.h
    tessera/base/half.h
    tessera/base/log.h
    tessera/base/narrow_float.h
    tessera/base/random.h
    tessera/base/rounding.h
    tessera/base/shape.h
    tessera/base/tensor.h
    tessera/base/text.h
    tessera/compile/backend.h
    tessera/compile/communicator.h
    tessera/compile/device.h
    tessera/compile/host_memory.h
    tessera/compile/kernel.h
    tessera/compile/queue.h
    tessera/compile/reference_kernel.h
    tessera/device/common/kernel_table.h
    tessera/device/common/refusal.h
    tessera/device/common/roles.h
    tessera/device/common/workspace_layout.h
    tessera/extend.h
    tessera/graph/attributes.h
    tessera/graph/dimension.h
    tessera/graph/graph.h
    tessera/graph/operand_places.h
    tessera/graph/operator.h
    tessera/graph/tensor_type.h
    tessera/ops/functions.h
    tessera/passes/decompose.h
    tessera/passes/fuse.h
    tessera/passes/fusion_pattern.h
    tessera/passes/pass.h)

# For users: what tessera/tessera.h reaches beside those.
set(TESSERA_USER_HEADERS
    tessera/base/file.h
    tessera/base/option.h
    tessera/base/registry.h
    tessera/compile/batch_memory.h
    tessera/compile/device_tensor.h
    tessera/compile/executable.h
    tessera/compile/executable_family.h
    tessera/compile/feeds.h
    tessera/compile/memory_plan.h
    tessera/compile/prepared_graph.h
    tessera/compile/variable_check.h
    tessera/compile/variables.h
    tessera/compile/workspace.h
    tessera/data/anchors.h
    tessera/data/annotated.h
    tessera/data/annotated_loader.h
    tessera/data/augment.h
    tessera/data/bounded_cache.h
    tessera/data/broken_samples.h
    tessera/data/crop.h
    tessera/data/csv.h
    tessera/data/dataset.h
    tessera/data/device_rows.h
    tessera/data/encoded.h
    tessera/data/examples.h
    tessera/data/geometry.h
    tessera/data/image.h
    tessera/data/loader.h
    tessera/data/parallel_tokens.h
    tessera/data/parquet.h
    tessera/data/random_view.h
    tessera/data/registry.h
    tessera/data/rows.h
    tessera/data/run_length_mask.h
    tessera/data/safetensors.h
    tessera/data/safetensors_parts.h
    tessera/data/shaped_images.h
    tessera/data/shards.h
    tessera/data/sound.h
    tessera/data/sounds.h
    tessera/data/source.h
    tessera/data/tables.h
    tessera/data/text.h
    tessera/data/token_lanes.h
    tessera/data/token_rows.h
    tessera/data/token_shards.h
    tessera/data/token_text.h
    tessera/data/tokenize.h
    tessera/data/transcripts.h
    tessera/graph/field.h
    tessera/infer/engine.h
    tessera/infer/plan.h
    tessera/infer/plan_builder.h
    tessera/models/bert.h
    tessera/models/bert_files.h
    tessera/models/decoder.h
    tessera/models/decoder_files.h
    tessera/models/model.h
    tessera/models/registry.h
    tessera/models/transformer.h
    tessera/models/transformer_xl.h
    tessera/nn/adaptive_softmax.h
    tessera/nn/attention_parts.h
    tessera/nn/augmentation.h
    tessera/nn/context.h
    tessera/nn/image_operations.h
    tessera/nn/images.h
    tessera/nn/initializer.h
    tessera/nn/layers.h
    tessera/nn/loss.h
    tessera/nn/relative_attention.h
    tessera/nn/row_state.h
    tessera/nn/segment_memory.h
    tessera/nn/shard.h
    tessera/nn/sound.h
    tessera/nn/sound_augmentation.h
    tessera/nn/task.h
    tessera/nn/unpadding.h
    tessera/nn/volume_augmentation.h
    tessera/ops/dropout_attention.h
    tessera/ops/expression.h
    tessera/ops/rms_norm.h
    tessera/ops/rotary_embedding.h
    tessera/optim/optimizer.h
    tessera/optim/registry.h
    tessera/optim/schedule.h
    tessera/passes/differentiate.h
    tessera/recipe/follow.h
    tessera/recipe/recipe.h
    tessera/recipe/run.h
    tessera/report/pictures.h
    tessera/report/sections.h
    tessera/tasks/*.h
    tessera/tessera.h
    tessera/text/bleu.h
    tessera/text/compared_words.h
    tessera/text/tokenizer.h
    tessera/text/training.h
    tessera/train/beam_search.h
    tessera/train/checkpoint.h
    tessera/train/evaluator.h
    tessera/train/generation.h
    tessera/train/history.h
    tessera/train/phase.h
    tessera/train/prediction.h
    tessera/train/step.h
    tessera/train/task_registry.h
    tessera/train/trainer.h
    tessera/train/workload.h)

# For users of networks in files, where their reader is built: what tessera/onnx.h reaches beside those.
set(TESSERA_ONNX_HEADERS
    tessera/onnx.h
    tessera/onnx/onnx.h
    tessera/onnx/save.h
    tessera/program/graph_owner.h
    tessera/program/item.h
    tessera/program/module.h
    tessera/program/runner.h)

# What the plug-ins of this tree include beside the extension's.
set(TESSERA_BACKEND_HEADERS
    tessera/base/background_work.h
    tessera/base/made_once.h
    tessera/base/option.h
    tessera/base/permutation.h
    tessera/base/progress.h
    tessera/base/registry.h
    tessera/compile/device_collectives.h
    tessera/compile/kernel_artifacts.h
    tessera/compile/threaded_kernels.h
    tessera/data/parquet_plugin.h
    tessera/device/common/*.h
    tessera/distribute/call.h
    tessera/distribute/part_cursor.h
    tessera/distribute/plugin.h
    tessera/distribute/rank_signs.h
    tessera/distribute/reduction.h
    tessera/distribute/registry.h
    tessera/passes/batch_norm_expression.h
    tessera/passes/settled_values.h)

# tessera/interface_version.h: a number of the text that plug-ins are built against. It is written anew, and its readers
# compiled, only where that text has changed; now too, for tools that read sources before anything is built.
set(TESSERA_INTERFACE_FOLDER "${CMAKE_BINARY_DIR}/interface")
set(TESSERA_INTERFACE_VERSION_HEADER "${TESSERA_INTERFACE_FOLDER}/tessera/interface_version.h")
set(INTERFACE_HEADERS)
foreach(HEADERS IN LISTS TESSERA_EXTENSION_HEADERS TESSERA_BACKEND_HEADERS)
  file(GLOB FILES RELATIVE "${CMAKE_SOURCE_DIR}/include" CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/include/${HEADERS}")
  list(APPEND INTERFACE_HEADERS ${FILES})
endforeach()
list(REMOVE_DUPLICATES INTERFACE_HEADERS)
set(INTERFACE_FILES ${INTERFACE_HEADERS})
list(TRANSFORM INTERFACE_FILES PREPEND "${CMAKE_SOURCE_DIR}/include/")
list(JOIN INTERFACE_HEADERS "," INTERFACE_HEADERS)  # one word in the list that the command is
set(INTERFACE_COMMAND "${CMAKE_COMMAND}" "-DHEADERS=${INTERFACE_HEADERS}" "-DFOLDER=${CMAKE_SOURCE_DIR}/include"
                      "-DOUTPUT=${TESSERA_INTERFACE_VERSION_HEADER}" -P "${CMAKE_CURRENT_LIST_DIR}/InterfaceVersion.cmake")
add_custom_command(OUTPUT "${TESSERA_INTERFACE_VERSION_HEADER}" COMMAND ${INTERFACE_COMMAND}
                   DEPENDS ${INTERFACE_FILES} "${CMAKE_CURRENT_LIST_DIR}/InterfaceVersion.cmake" VERBATIM)
add_custom_target(tessera_interface_version DEPENDS "${TESSERA_INTERFACE_VERSION_HEADER}")
execute_process(COMMAND ${INTERFACE_COMMAND} COMMAND_ERROR_IS_FATAL ANY)

# tessera_knows_interface_version(TARGET): may include <tessera/interface_version.h>.
function(tessera_knows_interface_version TARGET)
  target_include_directories(${TARGET} PRIVATE "${TESSERA_INTERFACE_FOLDER}")
  add_dependencies(${TARGET} tessera_interface_version)
endfunction()

# tessera_install_headers(): those of the interfaces, in the folders that they have here.
function(tessera_install_headers)
  set(INSTALLED ${TESSERA_USER_HEADERS} ${TESSERA_EXTENSION_HEADERS})
  if(TARGET tessera_onnx)
    list(APPEND INSTALLED ${TESSERA_ONNX_HEADERS})
  endif()
  foreach(HEADERS IN LISTS INSTALLED)
    get_filename_component(FOLDER "${HEADERS}" DIRECTORY)
    file(GLOB FILES CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/include/${HEADERS}")
    install(FILES ${FILES} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${FOLDER}")
  endforeach()
  install(FILES "${TESSERA_INTERFACE_VERSION_HEADER}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tessera")
endfunction()
