"""Front door in a browser: start-up, shut-down, HTTP routes, and the shell that shows the pages."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from calc import MODEL_VERSION
from calc.errors import PlimsollError


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Open the store, compile the simulator in the background, and close the store cleanly at the end."""
    from calc.simulator.warm import warm_up
    from ui import resources
    from ui.live import desk

    try:
        resources.store()
    except PlimsollError as error:
        raise SystemExit(str(error)) from None
    Thread(target=warm_up, name="compile-simulator", daemon=True).start()
    yield
    desk.close()
    resources.close_store()
    # After a clean end the server sends itself SIGTERM once more, which would be exit status 143 instead of 0.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


async def healthz(_request: Request) -> JSONResponse:
    """Alive, and which numbers this process serves."""
    return JSONResponse({"status": "ok", "model_version": MODEL_VERSION})


async def runs(request: Request) -> JSONResponse:
    """Results of a CI job, stored; off unless the operator sets a token."""
    from data import api_runs
    from ui import resources

    return await api_runs.answer(request, resources.store, resources.forget_logs)


ROUTES = [Route("/healthz", healthz), Route("/api/runs", runs, methods=["POST"])]
app = st.App("ui/shell.py", lifespan=lifespan, routes=ROUTES)

if __name__ == "__main__":
    app.run()
