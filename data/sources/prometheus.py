"""The door to metrics texts: one scrape as a snapshot, two as what happened between them, either as evidence."""

from data.sources.engine_metrics import Scrape, is_metrics_text, parse_metrics, scrape, scrape_all
from data.sources.metrics_evidence import evidence
from data.sources.metrics_window import Relation, difference, relation

__all__ = [
    "Relation",
    "Scrape",
    "difference",
    "evidence",
    "is_metrics_text",
    "parse_metrics",
    "relation",
    "scrape",
    "scrape_all",
]
