# SPDX-License-Identifier: GPL-2.0-or-later
# Compiler settings shared by every room, and the helpers that declare rooms and tests.

include(CheckLinkerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(ERNIC_SANITIZE "" CACHE STRING "Sanitizers to build with: address;undefined or thread")
option(ERNIC_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(ERNIC_COVERAGE "Build with gcov counters" OFF)
option(ERNIC_BUILD_DOCS "Build the manual (needs Sphinx)" OFF)

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wpointer-arith
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla -Wformat=2
	-Wwrite-strings -Werror -fno-common -fno-strict-aliasing -fstack-protector-strong)
add_compile_definitions(_GNU_SOURCE)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
	add_compile_options(-O2 -g)
	set(CMAKE_C_FLAGS_RELEASE "")   # asserts stay on: they are invariants, and cheap
	add_compile_definitions(_FORTIFY_SOURCE=2)
endif()

add_compile_options(-pipe)

if(ERNIC_SANITIZE)
	# A hundred programs with the sanitizer's library: linking them is a third of the build. With
	# clang's library this linker warns.
	check_linker_flag(C -fuse-ld=gold ERNIC_HAVE_GOLD)
	if(ERNIC_HAVE_GOLD AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		add_link_options(-fuse-ld=gold)
	endif()
	string(REPLACE ";" "," _san "${ERNIC_SANITIZE}")
	add_compile_options(-fsanitize=${_san} -fno-omit-frame-pointer -fno-sanitize-recover=all)
	add_link_options(-fsanitize=${_san})
	# Reports name functions and lines, no more. And UBSan's shared library has six megabytes of
	# zeros, which LeakSanitizer reads at the end of every program.
	set(CMAKE_C_FLAGS_DEBUG "-g1")
	if(_san MATCHES "undefined" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		add_link_options(-static-libubsan)
	endif()
	if(_san STREQUAL "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		# Fences order memory that another process looks at; the sanitizer sees only this one.
		add_compile_options(-Wno-tsan)
	endif()
endif()
if(ERNIC_FUZZ)
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(ERNIC_COVERAGE)
	add_compile_options(--coverage)
	add_link_options(--coverage)
endif()

# ernic_room(NAME SOURCES file... [LIBS lib...]) - one room of the house: the static library ernic_NAME.
function(ernic_room name)
	cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
	add_library(ernic_${name} STATIC ${ARG_SOURCES})
	target_include_directories(ernic_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
	target_link_libraries(ernic_${name} PUBLIC ${ARG_LIBS})
endfunction()

# ernic_unit_test(NAME SOURCES file... [LIBS lib...]) - a cmocka program, run by ctest as unit/NAME.
function(ernic_unit_test name)
	cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
	add_executable(unit_${name} ${ARG_SOURCES})
	target_link_libraries(unit_${name} PRIVATE ${ARG_LIBS} PkgConfig::CMOCKA)
	add_test(NAME unit/${name} COMMAND unit_${name})
	set_tests_properties(unit/${name} PROPERTIES LABELS "unit;fast" TIMEOUT 300)
endfunction()

# ernic_fuzz_target(NAME SOURCES file... [LIBS lib...]) - a libFuzzer program fuzz_NAME with its
# corpus in tests/fuzz/corpus/NAME.
function(ernic_fuzz_target name)
	if(NOT ERNIC_FUZZ)
		return()
	endif()
	cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
	add_executable(fuzz_${name} ${ARG_SOURCES})
	target_link_libraries(fuzz_${name} PRIVATE ${ARG_LIBS})
	target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endfunction()
