"""Stored logs that name the blocks of their prompts, as traces."""

from __future__ import annotations

import streamlit as st

from calc.reuse.trace import BlockTrace
from calc.reuse.views import in_order_of_time
from data.logs.blocks import block_trace
from data.store.logs import StoredLog, request_logs
from ui import resources

KEPT = 4
"""Traces kept in memory: a large one takes half a gigabyte."""


def with_blocks() -> tuple[StoredLog, ...]:
    """Logs whose requests name blocks, newest first."""
    return tuple(log for log in request_logs(resources.store().database) if log.block_size_tokens is not None)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def trace(log_id: str) -> BlockTrace:
    """The trace of a stored log, in order of time."""
    return in_order_of_time(block_trace(resources.store(), log_id))
