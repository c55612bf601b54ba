#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the lengths of C functions and files against the budget, and prints the figures.

Arguments: the files. The layout that clang-format keeps makes a function easy to find: its body
opens and closes with a brace in the first column.
"""

import sys

FILE_LINES = 800
FUNCTION_LINES = 100
FUNCTION_LINES_90 = 50  # ninety of a hundred functions
FUNCTION_LINES_MEDIAN = 15


def functions(path, lines):
    """Yield (lines, place) of every function: from its opening to its closing brace, inclusive."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start is not None:
            if not line.startswith("};"):
                yield number - start + 1, f"{path}:{start}"
            start = None


def main(arguments):
    sizes, problems = [], []
    total = 0
    for path in arguments:
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        total += len(lines)
        if len(lines) > FILE_LINES:
            problems.append(f"{path}: {len(lines)} lines, the budget is {FILE_LINES}")
        sizes += functions(path, lines)
    sizes.sort()
    for size, place in sizes:
        if size > FUNCTION_LINES:
            problems.append(f"{place}: function of {size} lines, the budget is {FUNCTION_LINES}")
    if sizes:
        median, most = sizes[len(sizes) // 2][0], sizes[len(sizes) * 9 // 10][0]
        print(
            f"{total} lines in {len(arguments)} files; {len(sizes)} functions:"
            f" median {median} lines, 90 % up to {most}, longest {sizes[-1][0]} ({sizes[-1][1]})"
        )
        if median > FUNCTION_LINES_MEDIAN:
            problems.append(f"median function above the budget of {FUNCTION_LINES_MEDIAN} lines")
        if most > FUNCTION_LINES_90:
            problems.append(f"90 % of the functions are above {FUNCTION_LINES_90} lines")
    for text in problems:
        print(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
