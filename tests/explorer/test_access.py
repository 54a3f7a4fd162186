"""Nobody without the token, from another host or from another site gets anything."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.routing import Route

import odefit
from odefit.explorer.access import Access
from odefit.explorer.application import STATIC, application
from odefit.explorer.session import Session

HOST = "http://127.0.0.1:4000"
TOKEN = "the-token-of-this-test"


def guarded() -> Access:
    session = Session(odefit.library.load("harmonic"))
    return Access(application(session, lambda: None), 4000, TOKEN)


class Client:
    """A browser with its cookies, without a network."""

    def __init__(self, access: Access) -> None:
        self._transport = httpx.ASGITransport(access)
        self.cookies = httpx.Cookies()

    def request(self, method: str, path: str, **more: Any) -> Any:
        async def ask() -> Any:
            kept = self.cookies
            made = httpx.AsyncClient(transport=self._transport, base_url=HOST, cookies=kept)
            async with made as client:
                answer = await client.request(method, path, **more)
                self.cookies = client.cookies
                return answer

        return asyncio.run(ask())

    def get(self, path: str, **more: Any) -> Any:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> Any:
        return self.request("POST", path, **more)


def client(access: Access, *, entered: bool = True) -> Client:
    made = Client(access)
    if entered:
        assert made.get(f"/?token={TOKEN}").status_code == 200
    return made


def every_route() -> list[tuple[str, str]]:
    routes = application(Session(odefit.library.load("harmonic")), lambda: None).routes
    found = []
    for route in routes:
        assert isinstance(route, Route)
        path = route.path.replace("{name}", "main.js")
        found += [(method, path) for method in sorted(route.methods or ())]
    return [*found, ("GET", "/nothing"), ("POST", "/"), ("OPTIONS", "/api/curves")]


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use() -> None:
    answer = client(guarded(), entered=False).get(f"/?token={TOKEN}")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert 'url=./"' in answer.text


def test_the_cookie_gives_access_to_everything() -> None:
    inside = client(guarded())
    assert "<title>odefit explore</title>" in inside.get("/").text
    for path in STATIC.iterdir():
        assert inside.get(f"/static/{path.name}").status_code == 200
    assert inside.get("/api/problem").json()["name"] == "harmonic"


def test_a_frame_has_the_token_in_its_path_and_needs_no_cookie() -> None:
    outside = client(guarded(), entered=False)
    answer = outside.get(f"/t/{TOKEN}/")
    assert answer.status_code == 200
    assert "frame-ancestors" not in answer.headers["content-security-policy"]
    assert outside.get(f"/t/{TOKEN}/static/main.js").status_code == 200
    assert outside.get(f"/t/{TOKEN}/api/problem").json()["name"] == "harmonic"


@pytest.mark.parametrize(("method", "path"), every_route())
def test_without_the_token_every_route_is_refused(method: str, path: str) -> None:
    outside = client(guarded(), entered=False)
    headers = {"origin": HOST, "content-type": "application/json"}
    wrong = [path, f"{path}?token=", f"{path}?token={TOKEN}x", f"/t/wrong{path}", f"/t/{path}"]
    for address in wrong:
        answer = outside.request(method, address, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    outside.cookies.set("odefit_explore_4000", "wrong")
    assert outside.request(method, path, headers=headers).status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), every_route())
@pytest.mark.parametrize("host", ["evil.example", "evil.example:4000", "127.0.0.1", "127.0.0.1:1"])
def test_another_host_name_is_refused_even_with_the_cookie(
    method: str, path: str, host: str
) -> None:
    inside = client(guarded())
    headers = {"host": host, "origin": f"http://{host}", "content-type": "application/json"}
    cookie = "; ".join(f"{k}={v}" for k, v in inside.cookies.items())
    assert cookie
    answer = inside.request(method, path, headers={**headers, "cookie": cookie})
    assert answer.status_code == 403
    assert inside.request(method, f"/?token={TOKEN}", headers=headers).status_code == 403
    assert inside.request(method, f"/t/{TOKEN}{path}", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "http://localhost:4000", "https://127.0.0.1:4000"],
)
def test_requests_from_other_sites_are_refused(origin: str | None) -> None:
    inside = client(guarded())
    headers = {"content-type": "application/json"} | ({} if origin is None else {"origin": origin})
    for _, path in (r for r in every_route() if r[0] == "POST" and r[1].startswith("/api")):
        assert inside.post(path, content=b"{}", headers=headers).status_code == 403
    right = {**headers, "origin": HOST}
    assert inside.post("/api/fit/stop", content=b"{}", headers=right).status_code == 200


def test_a_form_of_another_kind_is_refused() -> None:
    inside = client(guarded())
    form = {"origin": HOST, "content-type": "text/plain"}
    assert inside.post("/api/fit/stop", content=b"{}", headers=form).status_code == 415


def test_a_request_that_is_too_long_is_not_read() -> None:
    inside = client(guarded())
    headers = {"origin": HOST, "content-type": "application/json", "content-length": "1" * 12}
    assert inside.post("/api/curves", content=b"{}", headers=headers).status_code == 413


def test_nothing_but_the_page_s_own_files_is_served() -> None:
    inside = client(guarded())
    for name in (
        "../session.py",
        "..%2fsession.py",
        "%2e%2e/access.py",
        "main.py",
        "",
        "nothing.js",
    ):
        assert inside.get(f"/static/{name}").status_code == 404


def test_every_response_forbids_foreign_content() -> None:
    inside, outside = client(guarded()), client(guarded(), entered=False)
    for answer in (inside.get("/"), inside.get("/static/main.js"), outside.get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_names_no_other_machine_and_has_nothing_inline() -> None:
    namespaces = ("http://www.w3.org/2000/svg",)
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        for name in namespaces:
            text = text.replace(name, "")
        assert "http:" not in text
        assert "https:" not in text
        assert "//cdn" not in text
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "<style" not in page
    assert " style=" not in page
    assert " onclick" not in page
    assert page.count("<script") == page.count('<script type="module" src="static/')


def test_each_server_has_a_token_of_its_own() -> None:
    first, second = (
        Access(application(Session(odefit.library.load("harmonic")), lambda: None), 1)
        for _ in range(2)
    )
    assert first.token != second.token
    assert len(first.token) >= 32
