"""One table for every input field, every metric and every code: label, unit, help, bounds, formula, source.

Widgets, charts, the sheet and the guide all read these rows; nothing is worded twice.
"""

from ui.glossary.codes import BOUNDS, CHOICES, LAYERS, MARKS, OUTCOMES, PROVENANCE, UNIT_WORDS
from ui.glossary.fields import FIELDS as USUAL_FIELDS
from ui.glossary.fields import Field
from ui.glossary.further import FURTHER_FIELDS
from ui.glossary.own import OWN_FIELDS
from ui.glossary.terms import TERMS, Term
from ui.glossary.validity import SEVERITIES, VALIDITY

FIELDS = {**USUAL_FIELDS, **FURTHER_FIELDS}
"""Every field of a scenario."""

__all__ = [
    "BOUNDS",
    "CHOICES",
    "FIELDS",
    "LAYERS",
    "MARKS",
    "OUTCOMES",
    "OWN_FIELDS",
    "PROVENANCE",
    "SEVERITIES",
    "TERMS",
    "UNIT_WORDS",
    "VALIDITY",
    "Field",
    "Term",
]
