"""What a person can copy, for curl, Python and GDAL."""

import pytest

from tests.support.catalog_auth.documents import HREF, Json, item, resolved
from tollgate.serve.catalog_auth.resolve.recipes.recipe import Tool, recipes, safe_file_name
from tollgate.serve.catalog_auth.resolve.wire import resolution_json

API = "https://sign.example.com/v1"
OIDC = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://idp.example.com/.well-known/openid-configuration",
}


def texts(root: Json) -> dict[Tool, str]:
    (one,) = resolved(root).alternatives
    found = {recipe.tool: recipe.text for recipe in recipes(one, HREF)}
    for tool in found.keys() - {Tool.PYTHON}:
        start, end = "(\nset -e\n", ")\n"
        assert found[tool].startswith(start)
        assert found[tool].endswith(end)
        found[tool] = found[tool].removeprefix(start).removesuffix(end)
    return found


def of(scheme: Json, href: str = HREF) -> dict[Tool, str]:
    return texts(item({"s": scheme}, ["s"], href))


TAKEN = "if [ -e ./a.tif ]; then echo 'a.tif is there already' >&2; exit 1; fi\n"
CURL = f"{TAKEN}curl --fail --silent --show-error --globoff --output ./a.tif"


def test_a_public_file() -> None:
    found = texts(item())
    assert found[Tool.CURL] == f"{CURL} --location {HREF}\n"
    assert found[Tool.GDAL] == f"gdalinfo /vsicurl/{HREF}\n"
    assert found[Tool.PYTHON] == (
        "import requests\n"
        "\n"
        "session = requests.Session()\n"
        "session.trust_env = False  # no default credential, of ~/.netrc say, goes along\n"
        f"answer = session.request('GET', '{HREF}', timeout=60)\n"
        "answer.raise_for_status()\n"
        "data = answer.content\n"
    )


def test_a_token_is_asked_for_and_sent_as_a_header() -> None:
    found = of({"type": "http", "scheme": "bearer"})
    ask = '# FETCH_TOKEN is "s.token".\n: "${FETCH_TOKEN:?}"\n'
    header = "'Authorization: Bearer '\"$FETCH_TOKEN\""
    assert found[Tool.CURL] == f"{ask}{CURL} --location --header {header} {HREF}\n"
    export = f"export GDAL_HTTP_HEADERS={header}\n"
    assert found[Tool.GDAL] == f"{ask}{export}gdalinfo /vsicurl/{HREF}\n"
    assert "headers={'Authorization': 'Bearer ' + fetch_token}" in found[Tool.PYTHON]


def test_what_curl_and_requests_would_carry_along_is_not_redirected() -> None:
    for where in ("header", "cookie"):
        found = of({"type": "apiKey", "in": where, "name": "X-Key"})
        assert "--location" not in found[Tool.CURL]
        assert "allow_redirects=False" in found[Tool.PYTHON]
    assert "--location" in of({"type": "http", "scheme": "basic"})[Tool.CURL]


def test_a_key_in_the_query_is_encoded() -> None:
    found = of({"type": "apiKey", "in": "query", "name": "k"})
    assert found[Tool.CURL].startswith("encoded() {")
    assert f'\'{HREF}?k=\'"$(encoded "$FETCH_KEY")"' in found[Tool.CURL]
    assert f"'{HREF}?k=' + quote(fetch_key, safe=\"\")" in found[Tool.PYTHON]


def test_digest_is_left_to_each_tool() -> None:
    found = of({"type": "http", "scheme": "digest"})
    assert '--digest --user "$FETCH_USERNAME:$FETCH_PASSWORD"' in found[Tool.CURL]
    assert "auth=requests.auth.HTTPDigestAuth(fetch_username, fetch_password)" in found[Tool.PYTHON]
    assert "export GDAL_HTTP_AUTH=DIGEST\n" in found[Tool.GDAL]


def test_an_object_with_keys() -> None:
    found = of({"type": "s3"}, "s3://b/a%20b.tif")
    assert found[Tool.GDAL].endswith("gdalinfo '/vsis3/b/a b.tif'\n")
    ask = '# AWS_ACCESS_KEY_ID is "s.access_key_id".\n: "${AWS_ACCESS_KEY_ID:?}"\n'
    assert found[Tool.GDAL].startswith(f"{ask}export AWS_ACCESS_KEY_ID\n")
    assert "export AWS_NO_SIGN_REQUEST=NO\n" in found[Tool.GDAL]
    assert "--aws-sigv4 aws:amz:us-east-1:s3" in found[Tool.CURL]
    assert found[Tool.CURL].endswith("https://b.s3.amazonaws.com/a%20b.tif\n")
    assert "store = S3Store(bucket='b', access_key_id=environment_acc" in found[Tool.PYTHON]
    assert "data = obstore.get(store, 'a b.tif').bytes()\n" in found[Tool.PYTHON]


def test_a_login_a_signature_and_a_fetch_are_one_text() -> None:
    flow = {
        "method": "POST",
        "authorizationApi": API,
        "parameters": {name: {"in": "body", "required": True} for name in ("key", "team")},
    }
    signed = {"type": "signedUrl", "auth:refs": ["o"], "flows": {"sign": flow}}
    found = texts(item({"o": OIDC, "s": signed}, ["s"], "s3://b/k"))
    for text in found.values():
        assert text.index("code_challenge") < text.index(API) < len(text)
    wanted = 'jq --raw-output \'first(getpath(["signed_url"]), getpath(["href"]), getpath(["url"])'
    assert wanted in found[Tool.CURL]
    assert found[Tool.CURL].endswith('--output ./a.tif --location "$SIGN_URL"\n')
    assert "answer.json().get('signed_url') or answer.json().get('href')" in found[Tool.PYTHON]
    assert "json={'key': 'k', 'team': sign_team}" in found[Tool.PYTHON]


def test_what_is_made_by_the_client_is_made_in_each_language() -> None:
    urls = {f"{name}Url": f"https://idp.example.com/{name}" for name in ("authorization", "token")}
    machine = of({"type": "oauth2", "flows": {"clientCredentials": {**urls, "scopes": {}}}})
    pair = '"$(encoded "$TOKEN_CLIENT_ID")":"$(encoded "$TOKEN_CLIENT_SECRET")"'
    assert f"TOKEN_CLIENT=$(printf %s {pair} | openssl base64 -A)\n" in machine[Tool.CURL]
    assert "quote(token_client_id, safe=\"\") + ':' + quote(" in machine[Tool.PYTHON]
    person = of({"type": "oauth2", "flows": {"implicit": {**urls, "scopes": {}}}})
    assert "# The page you come back to has access_token in its fragment.\n" in person[Tool.CURL]
    assert "authorize_access_token = input(" in person[Tool.PYTHON]
    basic = of({"type": "http", "scheme": "basic"})
    wanted = 'FETCH_BASIC=$(printf %s "$FETCH_USERNAME":"$FETCH_PASSWORD" | openssl base64 -A)\n'
    assert wanted in basic[Tool.CURL]
    assert "fetch_basic = base64.b64encode((fetch_username + ':' + " in basic[Tool.PYTHON]


def test_a_tool_that_cannot_do_it_has_no_recipe() -> None:
    assert set(of({"type": "s3"}, "gs://b/k")) == {Tool.GDAL}
    root = item({"s": {"type": "s3"}}, ["s"], "s3://b/k")
    (one,) = resolved(root, "s.profile").alternatives
    assert [recipe.tool for recipe in recipes(one, HREF)] == [Tool.GDAL]


def test_a_public_object_needs_no_environment_for_curl() -> None:
    found = texts(item(href="s3://b/k"))
    assert found[Tool.CURL] == (f"{CURL} --location https://b.s3.amazonaws.com/k\n")
    assert found[Tool.GDAL] == "export AWS_NO_SIGN_REQUEST=YES\ngdalinfo /vsis3/b/k\n"


@pytest.mark.parametrize(
    "scheme",
    [{"type": "custom"}, {"type": "http", "scheme": "negotiate"}, {"type": "oauth2"}],
)
def test_what_a_program_cannot_do_has_no_recipe(scheme: Json) -> None:
    assert of(scheme) == {}


def test_recipes_come_with_the_answer_when_they_are_asked_for() -> None:
    resolution = resolved(item())
    (plain,) = resolution_json(resolution)["alternatives"]
    assert "recipes" not in plain
    (one,) = resolution_json(resolution, has_recipes=True)["alternatives"]
    assert list(one["recipes"]) == ["curl", "python", "gdal"]


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("https://e.org/a/.bashrc", "bashrc"),
        ("https://e.org/a/%2ebashrc?x#y", "bashrc"),
        ("https://e.org/a/%2e%2e%2f.profile", "profile"),
        ("https://e.org/a/", "a"),
        ("https://e.org/-rf", "rf"),
        ("https://e.org/a/x'y$(z)%20%C3%A9.tif", "x_y_z_.tif"),
        ("s3://b/dir/scene.tif", "scene.tif"),
        ("https://e.org/" + "x" * 300 + ".tif", "x" * 96 + ".tif"),
        ("https://e.org/..", "download"),
        (None, "download"),
    ],
)
def test_a_file_is_saved_under_a_safe_name(href: str | None, name: str) -> None:
    assert safe_file_name(href) == name


def test_two_parameters_are_two_variables() -> None:
    parameters = {name: {"in": "query", "required": True} for name in ("x-key", "x_key", "X_KEY")}
    flow = {"method": "GET", "authorizationApi": API, "parameters": parameters}
    found = of({"type": "signedUrl", "flows": {"sign": flow}})
    asked = [line for line in found[Tool.CURL].splitlines() if line.startswith("# SIGN_")]
    assert asked == [
        '# SIGN_X_KEY is "s.x-key".',
        '# SIGN_PARAMETER1 is "s.x_key".',
        '# SIGN_PARAMETER2 is "s.X_KEY".',
    ]


def test_gdal_is_told_of_azure_by_its_own_names() -> None:
    """Those of https://gdal.org/user/virtual_file_systems.html, /vsiaz/."""
    found = of({"type": "s3"}, "https://acme.blob.core.windows.net/maps/a.tif")[Tool.GDAL]
    assert "export AZURE_STORAGE_ACCOUNT=acme\n" in found
    assert "export AZURE_STORAGE_ACCESS_KEY\n" in found
    assert "AZURE_SECRET_ACCESS_KEY" not in found
    assert found.endswith("gdalinfo /vsiaz/maps/a.tif\n")
