"""Every sensible deployment for a load: generated, ruled out, simulated and ranked; and the inverse questions."""

from calc.search.result import Found, Reason, RuledOut, SearchResult
from calc.search.run import Progress, search
from calc.search.space import Combination, Space, usual_space

__all__ = [
    "Combination",
    "Found",
    "Progress",
    "Reason",
    "RuledOut",
    "SearchResult",
    "Space",
    "search",
    "usual_space",
]
