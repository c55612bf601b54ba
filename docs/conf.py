# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of the manual; `./run docs` builds it."""

import re
from pathlib import Path

_cmake = (Path(__file__).parent.parent / "CMakeLists.txt").read_text("utf-8")

project = "rocm-ernic"
author = "the rocm-ernic authors"
copyright = author  # noqa: A001
release = re.search(r"VERSION ([0-9.]+)", _cmake.split("project(")[1])[1]
version = release

exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {
    "description": "An RDMA network card that exists only in software",
    "fixed_sidebar": True,
    "page_width": "70em",
    "body_max_width": "52em",
}
html_show_copyright = False
highlight_language = "none"
nitpicky = True
