# SPDX-License-Identifier: GPL-2.0-or-later
"""Parsing of arguments whose errors are one line: the argument, what is wrong, the remedy."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

LIKENESS = 0.75  # from 0 to 1, of a flag that is proposed: --bar is not --share


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that knows no abbreviations, but proposes what may have been meant."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        """End with 2 and one line; argparse would put the usage before it."""
        line = " ".join(message.removeprefix("argument ").split())
        more = f"{self.prog} --help tells more"
        line = f"{line} ({more})" if line.endswith("?") else f"{line}; {more}"
        self.exit(2, f"{self.prog}: {line}\n")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str], namespace: Any = None
    ) -> Any:
        """Parse; what is no option is refused first, or its value would pass for a SCRIPT."""
        words = list(args)
        for word in words[: words.index("--")] if "--" in words else words:
            name = word.partition("=")[0]
            if re.match(r"--?[A-Za-z]", name) and name not in self._option_string_actions:
                self.error(f"unknown option '{name}'{self._proposal(name)}")
        return super().parse_args(words, namespace)

    def _proposal(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._option_string_actions, 1, LIKENESS)
        return f"; did you mean {near[0]}?" if near else ""
