"""Persona: personalities, sliders and gauges, read from Markdown (docs/spec/persona.md).

``library`` finds the files, ``documents`` parses their Markdown, ``personalities`` and ``sliders`` read it;
``session`` keeps the state, ``commands`` changes it by chat messages, ``prompt`` composes the system prompt.
``figures`` collects what ``gauges`` draws in ``boxes``. The caller passes in the figures of recalls: nothing here
imports recall, continuum or interchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.persona.commands import Command as Command, parse_commands as parse_commands
    from rlm_mem.persona.gauges import (
        Gauge as Gauge,
        parse_gauge as parse_gauge,
        render_gauge as render_gauge,
    )
    from rlm_mem.persona.library import (
        Library as Library,
        load_personality as load_personality,
        load_slider as load_slider,
    )
    from rlm_mem.persona.personalities import (
        Personality as Personality,
        parse_personality as parse_personality,
    )
    from rlm_mem.persona.prompt import PromptContext as PromptContext, compose_prompt as compose_prompt
    from rlm_mem.persona.session import Persona as Persona
    from rlm_mem.persona.sliders import Slider as Slider, parse_slider as parse_slider

__getattr__, __all__ = loader(
    __name__,
    {
        "commands": "Command parse_commands",
        "gauges": "Gauge parse_gauge render_gauge",
        "library": "Library load_personality load_slider",
        "personalities": "Personality parse_personality",
        "prompt": "PromptContext compose_prompt",
        "session": "Persona",
        "sliders": "Slider parse_slider",
    },
)
