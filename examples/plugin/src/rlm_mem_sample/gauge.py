"""A gauge: a Markdown template over the figures of ``rlm-mem persona hud --json``."""

__all__ = ["READING"]

READING = """\
# Reading

How much was kept of what was read.

```gauge
chunks {{fill}} {{store.chunks | count}}
```
"""
