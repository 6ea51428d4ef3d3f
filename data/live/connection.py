"""An HTTP connection that ends at its deadline whatever the other side does, follows nothing and uses no proxy."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from contextlib import suppress
from functools import lru_cache
from threading import Timer
from typing import Any


class Deadline:
    """Shuts the sockets it watches once its time is over; a socket's own timeout starts anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.passed = False
        self._sockets: list[socket.socket] = []
        self._timer = Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, connected: socket.socket) -> None:
        """From now on this socket is shut when time is over."""
        self._sockets.append(connected)

    def _cut(self) -> None:
        self.passed = True
        for connected in self._sockets:
            with suppress(OSError):  # closed already by the side that was faster
                connected.shutdown(socket.SHUT_RDWR)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_watched(http.client.HTTPConnection, self._deadline), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__(context=_trust())
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_watched(http.client.HTTPSConnection, self._deadline), req, context=_trust())


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """The certificates of this machine."""
    return ssl.create_default_context()


def _watched(kind: type[http.client.HTTPConnection], deadline: Deadline) -> Any:
    class Watched(kind):  # type: ignore[misc,valid-type]
        def connect(self) -> None:
            super().connect()
            deadline.watch(self.sock)

    return Watched


def opener(deadline: Deadline) -> urllib.request.OpenerDirector:
    """Speaks http and https, and nothing else: no redirects, proxies, files or ftp."""
    director = urllib.request.OpenerDirector()
    for handler in (
        _Http(deadline),
        _Https(deadline),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        director.add_handler(handler)
    return director
