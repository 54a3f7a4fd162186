"""The web application: the page, its scripts and styles, and its requests to a session."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from odefit.common.errors import InputError
from odefit.explorer.page_data import Json
from odefit.explorer.session import Session

STATIC = Path(__file__).parent / "static"
"""The folder of the page's own files."""

MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""The media types of the page's own files."""


def application(session: Session, leave: Callable[[], None]) -> Starlette:
    """Return the application for one session; `leave` ends the server."""

    def quit_server(_: Mapping[str, Any]) -> Json:
        leave()
        return {"ended": True}

    questions: dict[str, Callable[[Mapping[str, Any]], Json]] = {
        "curves": session.curves,
        "scenario": session.scenario,
        "sensitivities": session.sensitivities,
        "plane": session.plane,
        "figure": session.figure,
        "fit/start": session.start_fit,
        "fit/stop": lambda _: session.stop_fit(),
        "guesses/propose": session.propose_guesses,
        "guesses/write": session.write_guesses,
        "copy": session.save_copy,
        "quit": quit_server,
    }
    routes = [Route(f"/api/{name}", _post(f), methods=["POST"]) for name, f in questions.items()]
    routes += [
        Route("/api/problem", _get(session.description), methods=["GET"]),
        Route("/api/fit", _get(session.fit_report), methods=["GET"]),
        Route("/", _file, methods=["GET"]),
        Route("/favicon.ico", _icon, methods=["GET"]),
        Route("/static/{name}", _file, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={Exception: _unexpected})


async def _unexpected(_: Request, error: Exception) -> Response:
    return _json({"error": f"An error of odefit itself: {type(error).__name__}: {error}"}, 500)


async def _icon(_: Request) -> Response:
    return FileResponse(STATIC / "icon.svg", media_type=MEDIA_TYPES[".svg"])


async def _file(request: Request) -> Response:
    name = request.path_params.get("name", "index.html")
    path = STATIC / name
    if path.name != name or path.suffix not in MEDIA_TYPES or not path.is_file():
        return PlainTextResponse("not found\n", 404)
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix])


def _get(answer: Callable[[], Json]) -> Callable[[Request], Any]:
    async def handler(_: Request) -> Response:
        return _json(await run_in_threadpool(answer))

    return handler


def _post(answer: Callable[[Mapping[str, Any]], Json]) -> Callable[[Request], Any]:
    async def handler(request: Request) -> Response:
        try:
            asked = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError):
            return _json({"error": "expected JSON"}, 400)
        if not isinstance(asked, dict):
            return _json({"error": "expected an object of JSON"}, 400)
        try:
            return _json(await run_in_threadpool(answer, asked))
        except InputError as error:
            return _json({"error": "; ".join(error.messages)}, 422)

    return handler


def _json(content: Json, status: int = 200) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")
