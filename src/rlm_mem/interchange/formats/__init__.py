"""The built-in formats that an import reads: each module here defines one ``Format``, or several that share a reader.

A module that is put here is found by itself (``detection``); formats of other packages come by entry point.
"""

from __future__ import annotations
