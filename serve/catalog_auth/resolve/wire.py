"""A resolution as JSON (part D, "Resolving")."""

from collections.abc import Mapping

from tollgate.actors.kernel.json_value import Json
from tollgate.serve.catalog_auth.objects.urls import ObjectLocation
from tollgate.serve.catalog_auth.resolve import steps
from tollgate.serve.catalog_auth.resolve.recipes.recipe import recipes
from tollgate.serve.catalog_auth.resolve.target import NoTarget


def resolution_json(resolution: steps.Resolution, has_recipes: bool = False) -> Json:
    """The answer of `/resolve`; `has_recipes`: with what a person can copy, per alternative."""
    return {
        "target": {"pointer": resolution.pointer, "href": resolution.href},
        "public": resolution.is_public,
        "alternatives": [
            _alternative(one, resolution.href, has_recipes) for one in resolution.alternatives
        ],
        "unresolved": [
            {"ref": one.ref, "rule": one.rule, "suggest": one.suggest}
            for one in resolution.unresolved
        ],
        **_present(left_out=list(resolution.left_out)),
    }


def no_target_text(refusal: NoTarget) -> str:
    """Tells why there is nothing to resolve, for a problem document."""
    text = f"the document has no asset, alternate or link with that {refusal.target.by.value}"
    if refusal.suggest:
        text = f"{text}; there is {', '.join(refusal.suggest)}"
    return text


def location_json(location: ObjectLocation) -> Json:
    return {
        "provider": location.provider.value,
        "bucket": location.bucket,
        "key": location.key,
        "region": location.region,
        "endpoint": location.endpoint,
        "style": location.style.value,
    }


def _alternative(one: steps.Alternative, href: str | None, has_recipes: bool) -> Json:
    members: Json = {
        "ref": one.ref,
        "type": one.type,
        **_present(flow=one.flow, storage=one.storage, chain=list(one.chain)),
        "executable": one.is_executable,
        "missing": list(one.missing),
        "steps": [_step(step) for step in one.steps],
        "findings": list(one.findings),
    }
    if has_recipes:
        members["recipes"] = {recipe.tool.value: recipe.text for recipe in recipes(one, href)}
    return members


def _step(step: steps.RecipeStep) -> Json:
    match step:
        case steps.HttpStep():
            return _http(step)
        case steps.BrowserStep():
            return {
                "id": step.id,
                "kind": "browser",
                "request": _request(step.request),
                "produces": {"in": "fragment" if step.is_in_fragment else "query"}
                | {"as": step.produces},
                **_inputs(step.needs, step.derives),
                **_present(warnings=list(step.warnings)),
            }
        case steps.OidcStep():
            return {
                "id": step.id,
                "kind": "oidc",
                "discovery": step.discovery,
                "grants": list(step.grants),
                "produces": step.produces,
                "steps": [_step(inner) for inner in step.steps],
                **_present(warnings=list(step.warnings)),
            }
        case steps.EnvironmentStep():
            return {
                "id": step.id,
                "kind": "environment",
                "environment": dict(step.environment),
                "forms": dict(step.forms),
                **_inputs(step.needs, {}),
                **_present(warnings=list(step.warnings)),
            }
        case steps.ObjectStep():
            return {
                "id": step.id,
                "kind": "object",
                "location": location_json(step.location),
                "requesterPays": step.is_requester_pays,
                **_present(warnings=list(step.warnings)),
            }
        case steps.DescribedStep():
            return {"id": step.id, "kind": "described", "text": step.text}


def _http(step: steps.HttpStep) -> Json:
    produced = [_produced(one) for one in step.produces]
    members: Json = {"id": step.id, "kind": "http", "request": _request(step.request)}
    if produced:
        members["produces"] = produced[0]
    members |= _present(alsoProduces=produced[1:], challenge=step.challenge)
    members |= _inputs(step.needs, step.derives)
    members["credentials"] = _rule(step.credentials)
    if step.refresh is not None:
        members["refresh"] = _request(step.refresh)
    return members | _present(warnings=list(step.warnings))


def _request(request: steps.StepRequest) -> Json:
    members: Json = {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
    }
    if request.body is not None:
        members["body"] = dict(request.body)
    if request.form is not None:
        members["form"] = dict(request.form)
    return members


def _produced(produced: steps.Produced) -> Json:
    members: Json = {"pointer": produced.pointer, "as": produced.name}
    if produced.is_assumed is not None:
        members["responseFieldAssumed"] = produced.is_assumed
    return members | _present(otherwise=list(produced.otherwise))


def _rule(rule: steps.CredentialRule) -> Json:
    return {
        "of": list(rule.of),
        "hosts": list(rule.hosts),
        "default": rule.may_use_default,
        "onCrossHostRedirect": "drop",
    }


def _inputs(needs: Mapping[str, steps.Need], derives: Mapping[str, steps.Derivation]) -> Json:
    made = {
        name: {"how": derivation.how.value, **_present(of=derivation.of)}
        for name, derivation in derives.items()
    }
    return _present(needs={name: need.called for name, need in needs.items()}, derives=made)


def _present(**members: object) -> Json:
    """Only what is there."""
    return {name: value for name, value in members.items() if value}
