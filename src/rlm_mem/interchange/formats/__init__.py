"""The built-in formats that an import reads: each module defines one ``Format``, or several that share a reader.

``detection`` finds every module here; formats of other packages are found by entry point.
"""

from __future__ import annotations
