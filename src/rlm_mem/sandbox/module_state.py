"""The state that modules of the standard library keep, which is the same again for each program of a session.

For each module: source that notes its state before the first program, and source that puts it back before the next.
Both engines run it, the engine ``cpython`` for all modules, Monty for those that a program named. The names begin with
``_rlm_``, which programs may not use. It imports nothing of the package: the worker of ``cpython`` imports it alone.

Without such state are ``re`` (its cache changes no result), ``math``, ``datetime``, ``time``, ``json``, ``statistics``
and all others that programs may import; classes written in Python are restored by the worker.
"""

from __future__ import annotations

IN_MONTY = ("decimal", "random", "hashlib")
"""Those whose state programs can change in Monty."""

STATES = {
    "decimal": (
        """
import decimal as _rlm_decimal
_rlm_set_context = _rlm_decimal.setcontext
_rlm_contexts = []
for _rlm_one in (_rlm_decimal.DefaultContext, _rlm_decimal.BasicContext, _rlm_decimal.ExtendedContext):
    _rlm_contexts.append((_rlm_one, _rlm_one.copy()))
""",
        """
for _rlm_one, _rlm_kept in _rlm_contexts:
    _rlm_one.prec, _rlm_one.rounding = _rlm_kept.prec, _rlm_kept.rounding
    _rlm_one.Emin, _rlm_one.Emax = _rlm_kept.Emin, _rlm_kept.Emax
    _rlm_one.capitals, _rlm_one.clamp = _rlm_kept.capitals, _rlm_kept.clamp
    for _rlm_signal in _rlm_kept.traps:
        _rlm_one.traps[_rlm_signal] = _rlm_kept.traps[_rlm_signal]
    _rlm_one.clear_flags()
_rlm_set_context(_rlm_contexts[0][1].copy())
""",
    ),
    "random": ("import random as _rlm_random\n_rlm_seed = _rlm_random.seed\n", "_rlm_seed()\n"),
    "csv": (
        """
import csv as _rlm_csv
_rlm_dialect_names, _rlm_forget_dialect = _rlm_csv.list_dialects, _rlm_csv.unregister_dialect
_rlm_new_dialect, _rlm_field_size = _rlm_csv.register_dialect, _rlm_csv.field_size_limit
_rlm_dialects = []
for _rlm_one in _rlm_dialect_names():
    _rlm_dialects.append((_rlm_one, _rlm_csv.get_dialect(_rlm_one)))
""",
        """
for _rlm_one in _rlm_dialect_names():
    _rlm_forget_dialect(_rlm_one)
for _rlm_one, _rlm_kept in _rlm_dialects:
    _rlm_new_dialect(_rlm_one, _rlm_kept)
_rlm_field_size(131072)
""",
    ),
    "hashlib": (
        """
import hashlib as _rlm_hashlib
_rlm_sets = []
for _rlm_one in (_rlm_hashlib.algorithms_guaranteed, _rlm_hashlib.algorithms_available):
    _rlm_sets.append((_rlm_one, [*_rlm_one]))
""",
        """
for _rlm_one, _rlm_kept in _rlm_sets:
    _rlm_one.clear()
    _rlm_one.update(_rlm_kept)
""",
    ),
    "calendar": (
        """
import calendar as _rlm_calendar
_rlm_first_weekday = _rlm_calendar.setfirstweekday
_rlm_names = []
for _rlm_one in ("month_name", "month_abbr", "day_name", "day_abbr"):
    _rlm_names.append((getattr(_rlm_calendar, _rlm_one), getattr(_rlm_calendar, _rlm_one).format))
""",
        """
_rlm_first_weekday(0)
for _rlm_one, _rlm_kept in _rlm_names:
    _rlm_one.format = _rlm_kept
""",
    ),
}
