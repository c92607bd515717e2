"""Reading an object with the store's own client: the environment, and what that is for four tools.

The environment is that of the `s3` scheme (B2): `<CLOUD>_ACCESS_KEY_ID` and
`<CLOUD>_SECRET_ACCESS_KEY`, or `<CLOUD>_PROFILE` in the file `<CLOUD>_CONFIG_FILE`; and
`<CLOUD>_NO_SIGN_REQUEST`, which is NO where an `s3` scheme is referenced and YES elsewhere.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.objects.hosts import Provider, Style
from tollgate.serve.catalog_auth.objects.urls import ObjectLocation, https_url
from tollgate.serve.catalog_auth.resolve.credentials import hosts_of
from tollgate.serve.catalog_auth.resolve.steps import EnvironmentStep, Need, placeholder

# What the tools call the clouds.
CLOUDS = {
    Provider.AWS: "AWS",
    Provider.CUSTOM: "AWS",
    Provider.GOOGLE: "GS",
    Provider.AZURE: "AZURE",
}
_GDAL_FILES = {Provider.GOOGLE: "/vsigs", Provider.AZURE: "/vsiaz"}
_KEYS = ("access_key_id", "secret_access_key")
_PROFILE = ("profile", "config_file")


@dataclass(frozen=True, slots=True)
class Store:
    """An object where it is kept. `account` is Azure's."""

    location: ObjectLocation
    is_requester_pays: bool = False
    is_bucket_in_host: bool = False

    @property
    def cloud(self) -> str:
        return CLOUDS[self.location.provider]

    @property
    def is_s3(self) -> bool:
        return self.cloud == "AWS"

    @property
    def account(self) -> str | None:
        if self.location.provider is not Provider.AZURE or self.location.endpoint is None:
            return None
        return self.location.endpoint.partition("://")[2].partition(".")[0]

    @property
    def own_endpoint(self) -> str | None:
        """The endpoint that the tools have to be told: Amazon's follows from the region."""
        is_own = self.location.provider is Provider.CUSTOM
        return self.location.endpoint if is_own else None


def environment_step(
    step: str, store: Store, scheme: str | None, is_profile: bool = False
) -> EnvironmentStep:
    """The environment to read in. `scheme` None: without signatures; `is_profile`: the caller's
    keys are in a profile of a file."""
    cloud = store.cloud
    environment: dict[str, str] = {}
    needs: dict[str, Need] = {}
    if scheme is not None:
        for name in _PROFILE if is_profile else _KEYS:
            environment[f"{cloud}_{name.upper()}"] = placeholder(step, name)
            needs[name] = Need(scheme, name)
    environment[f"{cloud}_NO_SIGN_REQUEST"] = "YES" if scheme is None else "NO"
    environment |= _whereabouts(store)
    url = https_url(store.location)
    return EnvironmentStep(
        id=step,
        environment=environment,
        forms=_forms(step, store, environment),
        needs=needs,
        hosts=() if url is None else hosts_of(url),
    )


def _whereabouts(store: Store) -> Mapping[str, str]:
    found: dict[str, str] = {}
    if not store.is_s3:
        if store.account:
            found["AZURE_STORAGE_ACCOUNT"] = store.account
        return found
    if region := store.location.region:
        found["AWS_REGION"] = found["AWS_DEFAULT_REGION"] = region
    if endpoint := store.own_endpoint:
        found["AWS_ENDPOINT_URL"] = endpoint
    if store.is_requester_pays:
        found["AWS_REQUEST_PAYER"] = "requester"
    return found


def _forms(step: str, store: Store, environment: Mapping[str, str]) -> Mapping[str, JsonValue]:
    forms: dict[str, JsonValue] = {"gdal": _gdal(store, environment)}
    if store.is_s3:
        forms["rclone"] = _rclone(store, environment)
        forms["awsCli"] = {"command": _aws_command(store, environment)}
        forms["obstore"] = _obstore(step, store, environment)
    return forms


def _gdal(store: Store, environment: Mapping[str, str]) -> dict[str, JsonValue]:
    """GDAL's options: an endpoint without its scheme, and whether buckets are in its host."""
    location = store.location
    options: dict[str, JsonValue] = {
        name: value
        for name, value in environment.items()
        if name not in ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION")
    }
    if location.provider is Provider.AZURE:
        # (GDAL's own names: the documentation of /vsiaz)
        name, key = (
            options.pop("AZURE_ACCESS_KEY_ID", None),
            options.pop("AZURE_SECRET_ACCESS_KEY", None),
        )
        if key is not None:
            options["AZURE_STORAGE_ACCESS_KEY"] = key
        if name is not None and "AZURE_STORAGE_ACCOUNT" not in options:
            options["AZURE_STORAGE_ACCOUNT"] = name
    if endpoint := store.own_endpoint:
        scheme, _, authority = endpoint.partition("://")
        options["AWS_S3_ENDPOINT"] = authority
        options["AWS_HTTPS"] = "YES" if scheme == "https" else "NO"
        options["AWS_VIRTUAL_HOSTING"] = "TRUE" if store.is_bucket_in_host else "FALSE"
    elif store.is_s3 and "." in location.bucket:
        options["AWS_VIRTUAL_HOSTING"] = "FALSE"
    root = _GDAL_FILES.get(location.provider, "/vsis3")
    return {"environment": options, "path": f"{root}/{location.bucket}/{location.key}"}


def _rclone(store: Store, environment: Mapping[str, str]) -> dict[str, JsonValue]:
    """A remote called `catalog`, as environment variables."""
    prefix = "RCLONE_CONFIG_CATALOG_"
    is_signed = environment["AWS_NO_SIGN_REQUEST"] == "NO"
    variables: dict[str, JsonValue] = {
        f"{prefix}TYPE": "s3",
        f"{prefix}PROVIDER": "Other" if store.own_endpoint else "AWS",
        f"{prefix}ENV_AUTH": "false",
    }
    if is_signed and "AWS_PROFILE" in environment:
        variables[f"{prefix}ENV_AUTH"] = "true"
        variables[f"{prefix}PROFILE"] = environment["AWS_PROFILE"]
        variables[f"{prefix}SHARED_CREDENTIALS_FILE"] = environment["AWS_CONFIG_FILE"]
    elif is_signed:
        variables[f"{prefix}ACCESS_KEY_ID"] = environment["AWS_ACCESS_KEY_ID"]
        variables[f"{prefix}SECRET_ACCESS_KEY"] = environment["AWS_SECRET_ACCESS_KEY"]
    if region := store.location.region:
        variables[f"{prefix}REGION"] = region
    if endpoint := store.own_endpoint:
        variables[f"{prefix}ENDPOINT"] = endpoint
        variables[f"{prefix}FORCE_PATH_STYLE"] = "false" if store.is_bucket_in_host else "true"
    if store.is_requester_pays:
        variables[f"{prefix}REQUESTER_PAYS"] = "true"
    return {
        "environment": variables,
        "path": f"catalog:{store.location.bucket}/{store.location.key}",
    }


def _aws_command(store: Store, environment: Mapping[str, str]) -> str:
    location = store.location
    name = location.key.rstrip("/").rpartition("/")[2] or "object"
    words = ["aws", "s3", "cp", f"s3://{location.bucket}/{location.key}", f"./{name}"]
    if environment["AWS_NO_SIGN_REQUEST"] == "YES":
        words.append("--no-sign-request")
    if endpoint := store.own_endpoint:
        words += ["--endpoint-url", endpoint]
    if location.region:
        words += ["--region", location.region]
    if store.is_requester_pays:
        words += ["--request-payer", "requester"]
    return shlex.join(words)


def _obstore(step: str, store: Store, environment: Mapping[str, str]) -> dict[str, JsonValue]:
    """The options of obstore's S3Store."""
    location = store.location
    options: dict[str, JsonValue] = {"bucket": location.bucket}
    if environment["AWS_NO_SIGN_REQUEST"] == "YES":
        options["skip_signature"] = True
    elif "AWS_ACCESS_KEY_ID" in environment:
        options |= {name: placeholder(step, name) for name in _KEYS}
    if location.region:
        options["region"] = location.region
    if endpoint := store.own_endpoint:
        options["endpoint"] = endpoint
        options["virtual_hosted_style_request"] = store.is_bucket_in_host
        if endpoint.startswith("http://"):
            options["client_options"] = {"allow_http": True}
    if store.is_requester_pays:
        options["request_payer"] = True
    if location.style is Style.ACCESS_POINT:
        options["virtual_hosted_style_request"] = True
    return {"store": options, "path": location.key}
