"""The import path that the specification documents use; see ``brain.scripts``."""
