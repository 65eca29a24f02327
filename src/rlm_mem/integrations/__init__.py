"""Adapters to agent frameworks: each module is one extra and imports its framework (docs/integrations.md)."""
