"""Persona: personalities, sliders and gauges, read from Markdown (docs/spec/persona.md).

This package parses those files, keeps the state of a session, and composes the system prompt and the HUD. The caller
passes in the figures of recalls: nothing here imports recall, continuum or interchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.persona.commands import Command, parse_commands
    from rlm_mem.persona.gauges import Gauge, parse_gauge, render_gauge
    from rlm_mem.persona.library import Library, load_personality, load_slider
    from rlm_mem.persona.personalities import Personality, parse_personality
    from rlm_mem.persona.prompt import PromptContext, compose_prompt
    from rlm_mem.persona.session import Persona
    from rlm_mem.persona.sliders import Slider, parse_slider

__all__ = [
    "Command",
    "Gauge",
    "Library",
    "Persona",
    "Personality",
    "PromptContext",
    "Slider",
    "compose_prompt",
    "load_personality",
    "load_slider",
    "parse_commands",
    "parse_gauge",
    "parse_personality",
    "parse_slider",
    "render_gauge",
]

__getattr__ = loader(
    __name__,
    {
        "commands": ("Command", "parse_commands"),
        "gauges": ("Gauge", "parse_gauge", "render_gauge"),
        "library": ("Library", "load_personality", "load_slider"),
        "personalities": ("Personality", "parse_personality"),
        "prompt": ("PromptContext", "compose_prompt"),
        "session": ("Persona",),
        "sliders": ("Slider", "parse_slider"),
    },
)
