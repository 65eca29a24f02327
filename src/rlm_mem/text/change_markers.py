"""Expressions that mark something as changed, ended, present or uncertain, in several languages."""

from __future__ import annotations

import re

from rlm_mem.text.clauses import CHANGES, DAYS, ENDS, MONTHS, REPLACES, TRAVELLED, words
from rlm_mem.text.patterns import Expressions, late

ENDED = Expressions(
    (CHANGES | ENDS | REPLACES) - TRAVELLED - words("given gave brought")
    | words(
        "longer anymore now nowadays history goodbye dismissed split broke finally finished complete completed "
        "jetzt umgezogen verlegt gewechselt ahora mudado mudada cambiado cambiada"
    ),
    late(
        r"\b(?:gone off|(?:any|no) more|these days|at (?:long )?last|nicht mehr|keine? mehr|ab sofort|ya no)\b"
        r"|->|→|不再|现在|改[到成为]|换[了成]|搬[到了]",
        re.IGNORECASE,
        signs="gone off| more|these days| last| mehr|ab sofort|ya no|->|→|不再|现在|改|换|搬",
    ),
)
"""Words that mark a value in the same sentence as ended."""
HINTS = Expressions(
    words(
        "starting effective beginning since new newly correction corrections corrected update updated updates edit "
        "actually wrong mistake mistaken misread misheard mistyped typo scratch instead successor passed became become "
        "becomes turned formerly previously gone went so hence therefore thus because neue neuer neues neuen neuem "
        "seit statt stattdessen künftig desde nuevo nueva nuevos nuevas nouveau nouvelle désormais dorénavant depuis"
    ),
    late(
        r"\b(?:as of|from (?:now|today|tomorrow|here|this|next|(?:the )?\d)|mixed up|rather than"
        r"|(?:took|takes?|taken) over|hand(?:ed|s) |used to|goes to"
        r"|en lugar de|au lieu de|à partir d[eu']|a partir de"
        rf"|(?:from|ab) (?:{'|'.join(sorted(DAYS | MONTHS))}))\b|\bnot \d|=>",
        re.IGNORECASE,
        signs="as of|from |mixed up|rather than| over|hand|used to|goes to|en lugar|au lieu|a partir|à partir|ab |not "
        "|=>",
    ),
)
"""Weaker words of change."""
PRESENT = Expressions(
    words("is are has have does goes gets ist sind hat haben est sont es está están ha han"),
    late(r"\b(?:it|he|she|that|there)['’]s\b", re.IGNORECASE, signs="'s|’s"),
)
"""Verbs of present states."""
CONDITION = Expressions(
    words(
        "would could should might may if unless perhaps maybe würde würden könnte könnten sollte sollten falls wenn "
        "vielleicht si serait seraient aurait auraient pourrait pourraient podría podrían sería serían quizá quizás"
    ),
    late(r"\b(?:peut-être|tal vez)\b", re.IGNORECASE, signs="peut-être|tal vez"),
)
"""Words of uncertainty and conditions."""
