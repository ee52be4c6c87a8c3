# ffm_built_from(LIBRARY FILE...): stores in the library the digests of files (relative to ffm/) on which other parts must
# agree. If one of them changes, the library is rebuilt.
set(FFM_BUILT_FROM_SOURCE "${CMAKE_CURRENT_LIST_DIR}/built_from.c")
function(ffm_built_from library)
  set(noted "")
  foreach(file ${ARGN})
    set(path "${PROJECT_SOURCE_DIR}/ffm/${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(SHA256 "${path}" digest)
    string(APPEND noted "${file}=${digest} ")
  endforeach()
  target_sources(${library} PRIVATE "${FFM_BUILT_FROM_SOURCE}")
  target_compile_definitions(${library} PRIVATE "FFM_BUILT_FROM=\"${noted}\"")
endfunction()
