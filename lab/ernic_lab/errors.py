# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception of the lab: something the user must know, and what to do about it."""


class LabError(Exception):
    """Ends a command. The text names the thing that is wrong and the remedy."""
