"""A client that does exactly what a resolution says, from its JSON, and nothing of its own.

It knows the language of `serve/catalog_auth/resolve/steps.py`: places, what is derived, and the
rules for credentials, redirects among them.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urljoin, urlsplit

import httpx

from tollgate.actors.kernel.json_value import Json

PLACE = re.compile(r"\$\{([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\}")
REDIRECTS_MAX = 5
# A person with a browser: gets an address to visit, gives the address that it ends at.
Person = Callable[[str], str]


class StepClient:
    """`held`: the caller's values by the names of `needs`; `defaults`: headers that may go only
    where a step allows a default credential."""

    def __init__(
        self,
        held: Mapping[str, str] | None = None,
        person: Person | None = None,
        redirect_uri: str = "http://127.0.0.1:1/callback",
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.held = dict(held or {})
        self.person = person
        self.redirect_uri = redirect_uri
        self.defaults = dict(defaults or {})
        self.values: dict[tuple[str, str], str] = {}
        self.environment: dict[str, str] = {}
        self.http = httpx.Client(trust_env=False, timeout=30)

    def run(self, alternative: Json) -> httpx.Response:
        """Does all steps; the answer of the last one."""
        assert alternative["executable"], alternative
        answer: httpx.Response | None = None
        with self.http:
            for step in alternative["steps"]:
                answer = self._step(step)
        assert answer is not None
        return answer

    def _step(self, step: Json) -> httpx.Response | None:
        if step["kind"] == "oidc":
            for inner in step["steps"]:
                self._step(inner)
            produced = step["produces"]
            self.values[step["id"], produced] = self.values[step["steps"][-1]["id"], produced]
            return None
        for name, called in step.get("needs", {}).items():
            self.values[step["id"], name] = self.held[called]
        for name, made in step.get("derives", {}).items():
            self.values[step["id"], name] = self._derived(made)
        match step["kind"]:
            case "http":
                return self._http(step)
            case "browser":
                self._visit(step)
            case "environment":
                made_of = step["environment"].items()
                self.environment |= {name: self._filled(text) for name, text in made_of}
            case unknown:
                raise AssertionError(f"no client does a step of kind {unknown} by itself")
        return None

    def _derived(self, made: Json) -> str:
        match made["how"]:
            case "random":
                return _base64url(secrets.token_bytes(32))
            case "s256":
                return _base64url(hashlib.sha256(self._filled(made["of"]).encode()).digest())
            case "basic":
                return base64.b64encode(self._filled(made["of"]).encode()).decode()
            case "basic-form":
                text = self._filled(made["of"], is_encoded=True)
                return base64.b64encode(text.encode()).decode()
            case "redirect":
                return self.redirect_uri
        raise AssertionError(f"nothing is made by {made['how']}")

    def _visit(self, step: Json) -> None:
        assert self.person is not None, "somebody has to log in"
        end = urlsplit(self.person(self._url(step["request"]["url"])))
        assert end.geturl().startswith(self.redirect_uri), end
        produced = step["produces"]
        given = parse_qs(end.fragment if produced["in"] == "fragment" else end.query)
        assert given["state"] == [self.values[step["id"], "state"]], "somebody else's answer"
        (self.values[step["id"], produced["as"]],) = given[produced["as"]]

    def _http(self, step: Json) -> httpx.Response:
        request, rule = step["request"], step["credentials"]
        url = self._url(request["url"])
        hosts = rule["hosts"]
        assert not hosts or urlsplit(url).hostname in hosts, "not a host of the credentials"
        headers = {name: self._filled(text) for name, text in request["headers"].items()}
        if rule["default"]:
            headers = {**self.defaults, **headers}
        auth = None
        if step.get("challenge") == "Digest":
            pair = (self.values[step["id"], name] for name in ("username", "password"))
            auth = httpx.DigestAuth(*pair)
        answer = self.http.request(
            request["method"], url, headers=headers, auth=auth, **self._content(request)
        )
        answer = self._followed(answer, headers, rule)
        for produced in [step.get("produces"), *step.get("alsoProduces", [])]:
            if produced is not None:
                answer.raise_for_status()
                self._keep(step["id"], produced, answer.json())
        return answer

    def _content(self, request: Json) -> Json:
        if "form" in request:
            return {"data": {name: self._filled(text) for name, text in request["form"].items()}}
        if "body" in request:
            filled = {
                name: self._filled(value) if isinstance(value, str) else value
                for name, value in request["body"].items()
            }
            return {"json": filled}
        return {}

    def _followed(
        self, answer: httpx.Response, headers: Mapping[str, str], rule: Json
    ) -> httpx.Response:
        """Redirects, without the headers of the step once another host is reached."""
        assert rule["onCrossHostRedirect"] == "drop"
        for _ in range(REDIRECTS_MAX):
            if not answer.is_redirect:
                break
            url = urljoin(str(answer.url), answer.headers["location"])
            if urlsplit(url).netloc != urlsplit(str(answer.url)).netloc:
                headers = {}
            answer = self.http.get(url, headers=dict(headers))
        return answer

    def _keep(self, step: str, produced: Json, answer: Any) -> None:
        for pointer in (produced["pointer"], *produced.get("otherwise", [])):
            found = answer
            for name in pointer.split("/")[1:]:
                found = found.get(name.replace("~1", "/").replace("~0", "~"), {})
            if isinstance(found, str):
                self.values[step, produced["as"]] = found
                return

    def _url(self, text: str) -> str:
        first = PLACE.match(text)
        if first is None:
            return self._filled(text, is_encoded=True)
        start = self.values[first[1], first[2]]
        rest = self._filled(text[first.end() :], is_encoded=True)
        return start + (f"&{rest[1:]}" if "?" in start and rest.startswith("?") else rest)

    def _filled(self, text: str, is_encoded: bool = False) -> str:
        def value(found: re.Match[str]) -> str:
            held = self.values[found[1], found[2]]
            return quote(held, safe="") if is_encoded else held

        return PLACE.sub(value, text)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
