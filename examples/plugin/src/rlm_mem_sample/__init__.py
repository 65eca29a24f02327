"""A sample of a package that extends RLM-MEM by entry points (see pyproject.toml)."""
