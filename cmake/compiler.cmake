# libfacula_compiler.so: fused loops to machine code by LLVM 19, linked in, with the scalar functions
# as bitcode that clang 19 makes of the kernels' own sources.

find_program(LLVM_CONFIG NAMES llvm-config-19 HINTS /usr/lib/llvm-19/bin REQUIRED)
find_program(CLANG NAMES clang++-19 HINTS /usr/lib/llvm-19/bin REQUIRED)
find_program(OPT NAMES opt-19 HINTS /usr/lib/llvm-19/bin REQUIRED)
find_program(LLVM_LINK NAMES llvm-link-19 llvm-link HINTS /usr/lib/llvm-19/bin REQUIRED)

function(ask_llvm RESULT)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE ANSWER COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(ANSWER UNIX_COMMAND "${ANSWER}")
  set(${RESULT} ${ANSWER} PARENT_SCOPE)
endfunction()
ask_llvm(LLVM_INCLUDES --includedir)
ask_llvm(LLVM_LIBS --link-static --libs x86codegen x86asmparser orcjit passes bitreader linker)
ask_llvm(LLVM_LIBDIR --libdir)

set(BITCODE)
set(SCALAR_SOURCES ${LOOP_SOURCES})
list(FILTER SCALAR_SOURCES INCLUDE REGEX "/kernels/(elementwise|special)/")
foreach(ISA avx2 avx512)
  set(PARTS)
  foreach(SOURCE IN LISTS SCALAR_SOURCES)
    cmake_path(GET SOURCE STEM PART)
    cmake_path(GET SOURCE PARENT_PATH FAMILY)
    cmake_path(GET FAMILY FILENAME FAMILY)
    set(PART ${CMAKE_BINARY_DIR}/bitcode/${ISA}/${FAMILY}_${PART}.bc)
    add_custom_command(
      OUTPUT ${PART}
      COMMAND ${CLANG} -std=gnu++20 -O1 -Xclang -disable-llvm-passes ${FLAGS_${ISA}} -fPIC -w
              -ffp-contract=off -fno-math-errno -fno-trapping-math -DFACULA_ISA=${ISA}
              -DFACULA_HAS_AVX2 -DFACULA_HAS_AVX512 -I${CMAKE_SOURCE_DIR}/src -I${GENERATED}
              -I${CMAKE_SOURCE_DIR}/include -MD -MF ${PART}.d -emit-llvm -c ${SOURCE} -o ${PART}
      DEPENDS ${SOURCE}
      DEPFILE ${PART}.d
      COMMENT "bitcode")
    list(APPEND PARTS ${PART})
  endforeach()
  set(WHOLE ${CMAKE_BINARY_DIR}/bitcode/scalar_${ISA}.bc)
  # Helpers become parts of the loops that use them: less to read for each loop that is compiled.
  add_custom_command(
    OUTPUT ${WHOLE}
    COMMAND ${LLVM_LINK} ${PARTS} -o ${WHOLE}.linked
    COMMAND ${OPT} -passes=internalize,default<O1> --internalize-public-api-list=*5tableE,*4LoopIN*
            ${WHOLE}.linked -o ${WHOLE}
    DEPENDS ${PARTS}
    VERBATIM)
  list(APPEND BITCODE ${WHOLE})
endforeach()

enable_language(ASM)
set(EMBEDDED ${CMAKE_SOURCE_DIR}/src/codegen/llvm/bitcode.S)
set_source_files_properties(${EMBEDDED} PROPERTIES OBJECT_DEPENDS "${BITCODE}"
                            COMPILE_OPTIONS "-Wa,-I${CMAKE_BINARY_DIR}/bitcode")
add_library(facula_compiler SHARED ${COMPILER_SOURCES} ${EMBEDDED})
target_include_directories(facula_compiler PRIVATE src)
target_include_directories(facula_compiler SYSTEM PRIVATE ${LLVM_INCLUDES})
target_compile_options(facula_compiler PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -O1>)
target_link_directories(facula_compiler PRIVATE ${LLVM_LIBDIR})
# Nothing of LLVM is seen from outside: another LLVM in the process is another one.
target_link_options(facula_compiler PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
target_link_libraries(facula_compiler PRIVATE ${LLVM_LIBS} z zstd Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(facula_compiler PROPERTIES CXX_VISIBILITY_PRESET hidden)
add_dependencies(facula_compiler facula_generated)
