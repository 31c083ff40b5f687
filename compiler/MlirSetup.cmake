# Finds Debian's MLIR and LLVM and the helpers of their build.
find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# mlir_tablegen takes include paths from directory properties only.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# Flags of every target that includes MLIR headers. LLVM here is built without exceptions, so none may pass its frames.
add_library(nearbank_mlir_options INTERFACE)
target_link_libraries(nearbank_mlir_options INTERFACE nearbank_options MLIR LLVM)
target_compile_definitions(nearbank_mlir_options INTERFACE ${LLVM_DEFINITIONS_LIST})
target_compile_options(nearbank_mlir_options INTERFACE -Wno-redundant-move -Wno-dangling-reference -Wno-overloaded-virtual)
