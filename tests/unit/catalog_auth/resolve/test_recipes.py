"""What a person can copy, for curl, Python and GDAL."""

import re

import pytest

from tests.support.catalog_auth.documents import HREF, Json, item, resolved
from tollgate.serve.catalog_auth.resolve.recipes.recipe import Tool, recipes, safe_file_name
from tollgate.serve.catalog_auth.resolve.recipes.shell import HELD
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
        found[tool] = found[tool].removeprefix(start).removesuffix(end).removeprefix(f"{HELD}\n")
    return found


def asked(variable: str, what: str) -> str:
    """The line of a shell that asks for something."""
    return f"held \"${{{variable}-}}\" 'set {variable} first: your {what}'\n"


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
        "def fetched():\n"
        "    session = requests.Session()\n"
        "    session.trust_env = False  # no default credential, of ~/.netrc say, goes along\n"
        f"    answer = session.request('GET', '{HREF}', timeout=60)\n"
        "    answer.raise_for_status()\n"
        "    return answer.content\n"
        "\n"
        "data = fetched()\n"
    )


def test_a_token_is_asked_for_and_sent_as_a_header() -> None:
    found = of({"type": "http", "scheme": "bearer"})
    ask = asked("TOKEN_of_S_at_DATA_EXAMPLE_COM", '"s.token" for data.example.com')
    header = "'Authorization: Bearer '\"$TOKEN_of_S_at_DATA_EXAMPLE_COM\""
    assert found[Tool.CURL] == f"{ask}{CURL} --location --header {header} {HREF}\n"
    export = f"export GDAL_HTTP_HEADERS={header}\n"
    assert found[Tool.GDAL] == f"{ask}{export}gdalinfo /vsicurl/{HREF}\n"
    python = found[Tool.PYTHON]
    assert "fetch_token = getpass.getpass('\"s.token\" for data.example.com: ')\n" in python
    assert "headers={'Authorization': 'Bearer ' + fetch_token}" in python


def test_what_curl_and_requests_would_carry_along_is_not_redirected() -> None:
    header, cookie = (
        of({"type": "apiKey", "in": where, "name": "X-Key"}) for where in ("header", "cookie")
    )
    for found in (header, cookie, of({"type": "http", "scheme": "digest"})):
        assert "--location" not in found[Tool.CURL]
        assert "allow_redirects=False" in found[Tool.PYTHON]
    # (GDAL always follows, with all headers but Authorization and Cookie)
    assert Tool.GDAL not in header
    assert Tool.GDAL in cookie
    assert "--location" in of({"type": "http", "scheme": "basic"})[Tool.CURL]


def test_a_key_in_the_query_is_encoded() -> None:
    found = of({"type": "apiKey", "in": "query", "name": "k"})
    assert found[Tool.CURL].startswith("encoded() {")
    assert f'\'{HREF}?k=\'"$(encoded "$KEY_of_S_at_DATA_EXAMPLE_COM")"' in found[Tool.CURL]
    assert f"'{HREF}?k=' + quote(fetch_key, safe=\"\")" in found[Tool.PYTHON]


def test_digest_is_left_to_each_tool() -> None:
    found = of({"type": "http", "scheme": "digest"})
    where = "of_S_at_DATA_EXAMPLE_COM"
    pair = f'"${{USERNAME_{where}}}:${{PASSWORD_{where}}}"'
    assert f"--digest --user {pair}" in found[Tool.CURL]
    assert f"export GDAL_HTTP_USERPWD={pair}\n" in found[Tool.GDAL]
    assert "auth=requests.auth.HTTPDigestAuth(fetch_username, fetch_password)" in found[Tool.PYTHON]
    assert "export GDAL_HTTP_AUTH=DIGEST\n" in found[Tool.GDAL]


def test_an_object_with_keys() -> None:
    found = of({"type": "s3"}, "s3://b/a%20b.tif")
    assert found[Tool.GDAL].endswith("gdalinfo '/vsis3/b/a b.tif'\n")
    ask = asked("AWS_ACCESS_KEY_ID", '"s.access_key_id" for b.s3.amazonaws.com')
    assert found[Tool.GDAL].startswith(f"{ask}export AWS_ACCESS_KEY_ID\n")
    assert "export AWS_NO_SIGN_REQUEST=NO\n" in found[Tool.GDAL]
    assert "--aws-sigv4 aws:amz:us-east-1:s3" in found[Tool.CURL]
    assert found[Tool.CURL].endswith("https://b.s3.amazonaws.com/a%20b.tif\n")
    python = found[Tool.PYTHON]
    assert "        'access_key_id': environment_access_key_id,\n" in python
    assert "    store = S3Store(bucket='b', credential_provider=lambda: keys)\n" in python
    assert "    return obstore.get(store, 'a b.tif').bytes()\n" in python


def stored_at(platform: str) -> dict[Tool, str]:
    """The recipes for an object of a store that the document describes."""
    schemes = {"storage:schemes": {"own": {"type": "custom-s3", "platform": platform}}}
    return texts(item({"s": {"type": "s3"}}, ["s"], "s3://b/k", {"storage:refs": ["own"]}, schemes))


def test_the_keys_of_a_store_of_ones_own_are_not_those_of_a_cloud() -> None:
    """(which everybody has in the environment: a document may name any endpoint)"""
    found = stored_at("https://objects.example.org")
    curl = found[Tool.CURL]
    assert "AWS_" not in curl
    assert '--user "${ACCESS_KEY_ID_of_S_at_OBJECTS_EXAMPLE_ORG}:${SECRET_ACCESS_KEY_of' in curl
    gdal = found[Tool.GDAL]
    assert 'export AWS_ACCESS_KEY_ID="$ACCESS_KEY_ID_of_S_at_OBJECTS_EXAMPLE_ORG"\n' in gdal
    assert "unset AWS_SESSION_TOKEN\n" in gdal
    token = "SESSION_TOKEN_of_S_at_OBJECTS_EXAMPLE_ORG"
    assert f'[ -z "${{{token}-}}" ] || export AWS_SESSION_TOKEN="${token}"\n' in gdal


@pytest.mark.parametrize(
    "platform",
    [
        "https://ec2-192-0-2-3.compute-1.amazonaws.com",
        "https://x1.execute-api.us-east-1.amazonaws.com",
        "https://s3-1.us-east-1.elb.amazonaws.com",
        "https://x.lambda-url.us-east-1.amazonaws.com",
        "https://s3.us-east-1.amazonaws.com.example.org",
        "https://nots3.us-east-1.amazonaws.com",
        "https://amazonaws.com",
        "https://x.googleapis.com",
        "https://storage.googleapis.com",
        "https://s3.amazonaws.com:8443",
        "http://s3.amazonaws.com",
        "http://b.s3.us-east-1.amazonaws.com",
        "http://b.s3-website-us-east-1.amazonaws.com",
    ],
)
def test_a_host_that_anybody_can_rent_is_not_the_cloud(platform: str) -> None:
    """(nor is the cloud's own without encryption, or another cloud's)"""
    found = stored_at(platform)
    for tool in (Tool.CURL, Tool.GDAL):
        assert 'held "${ACCESS_KEY_ID_of_S_at_' in found[tool]
        assert "${AWS_" not in found[tool]
    assert "unset AWS_SESSION_TOKEN\n" in found[Tool.GDAL]


@pytest.mark.parametrize(
    "href",
    [
        "https://b.s3.us-west-2.amazonaws.com/k",
        "https://s3.us-west-2.amazonaws.com/b/k",
        "https://b.s3.amazonaws.com/k",
        "https://s3.amazonaws.com/b/k",
        "https://my.bucket.s3-us-west-2.amazonaws.com/k",
        "https://b.s3.dualstack.us-west-2.amazonaws.com/k",
        "https://b.s3.cn-north-1.amazonaws.com.cn/k",
        "https://b.s3-accelerate.amazonaws.com/k",
        "https://maps-123456789012.s3-accesspoint.us-west-2.amazonaws.com/k",
        "s3://b/k",
    ],
)
def test_the_clouds_own_endpoints_take_the_keys_of_the_environment(href: str) -> None:
    found = of({"type": "s3"}, href)
    assert found[Tool.CURL].startswith('held "${AWS_ACCESS_KEY_ID-}" ')
    assert "${AWS_SESSION_TOKEN:+--header}" in found[Tool.CURL]
    assert 'held "${AWS_SECRET_ACCESS_KEY-}" ' in found[Tool.GDAL]
    assert "unset" not in found[Tool.GDAL]


@pytest.mark.parametrize(
    ("href", "is_known"),
    [
        ("gs://b/k", True),
        ("https://storage.googleapis.com/b/k", True),
        ("https://b.storage.googleapis.com/k", True),
        ("http://b.storage.googleapis.com/k", False),
    ],
)
def test_googles_own_keys_go_to_its_store(href: str, is_known: bool) -> None:
    found = of({"type": "s3"}, href)[Tool.GDAL]
    assert ('held "${GS_SECRET_ACCESS_KEY-}" ' in found) is is_known


@pytest.mark.parametrize("tool", [Tool.CURL, Tool.GDAL])
def test_a_text_that_a_terminal_takes_for_keys_is_in_no_shells_recipe(tool: Tool) -> None:
    for text in ("a\nb", "a\x1b[201~b", "a\tb", "a\u202eb"):
        found = of({"type": "apiKey", "in": "query", "name": "k"}, f"{HREF}?{text}")
        assert tool not in found
        assert Tool.PYTHON in found


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
    assert "json={'key': 'k', 'team': sign_parameter1}" in found[Tool.PYTHON]
    # What a person has to put in is asked for before anything is sent.
    curl = found[Tool.CURL]
    assert curl.index("TEAM_of_S_at_SIGN_EXAMPLE_COM") < curl.index("LOGIN_DISCOVER_ANSWER=")


def test_what_is_made_by_the_client_is_made_in_each_language() -> None:
    urls = {f"{name}Url": f"https://idp.example.com/{name}" for name in ("authorization", "token")}
    machine = of({"type": "oauth2", "flows": {"clientCredentials": {**urls, "scopes": {}}}})
    where = "of_S_at_IDP_EXAMPLE_COM"
    pair = f'"$(encoded "$CLIENT_ID_{where}")":"$(encoded "$CLIENT_SECRET_{where}")"'
    assert f"TOKEN_CLIENT=$(printf %s {pair} | openssl base64 -A)\n" in machine[Tool.CURL]
    assert "quote(token_client_id, safe=\"\") + ':' + quote(" in machine[Tool.PYTHON]
    person = of({"type": "oauth2", "flows": {"implicit": {**urls, "scopes": {}}}})
    assert "The page you come back to has access_token in its fragment." in person[Tool.CURL]
    assert "authorize_access_token = input(" in person[Tool.PYTHON]
    basic = of({"type": "http", "scheme": "basic"})
    where = "of_S_at_DATA_EXAMPLE_COM"
    pair = f'"$USERNAME_{where}":"$PASSWORD_{where}"'
    wanted = f"FETCH_BASIC=$(printf %s {pair} | openssl base64 -A)\n"
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
    told = [line.partition(" first: your ")[2] for line in found[Tool.CURL].splitlines()]
    assert list(filter(None, told)) == [
        '"s.x-key" for sign.example.com\'',
        '"s.x_key" for sign.example.com\'',
        '"s.X_KEY" for sign.example.com\'',
    ]
    assert 'held "${X__KEY_of_S_at_SIGN_EXAMPLE_COM-}" ' in found[Tool.CURL]
    assert 'held "${X_KEY_of_S_at_SIGN_EXAMPLE_COM-}" ' in found[Tool.CURL]
    typed = re.findall(r"^    (\w+) = getpass\.getpass\(", found[Tool.PYTHON], re.MULTILINE)
    assert len(set(typed)) == len(parameters)
    for name in typed:
        assert found[Tool.PYTHON].count(f"quote({name}, ") == 1


def test_gdal_is_told_of_azure_by_its_own_names() -> None:
    """Those of https://gdal.org/user/virtual_file_systems.html, /vsiaz/."""
    found = of({"type": "s3"}, "https://acme.blob.core.windows.net/maps/a.tif")[Tool.GDAL]
    assert "export AZURE_STORAGE_ACCOUNT=acme\n" in found
    key = "SECRET_ACCESS_KEY_of_S_at_ACME_BLOB_CORE_WINDOWS_NET"
    assert f'export AZURE_STORAGE_ACCESS_KEY="${key}"\n' in found
    assert "unset AZURE_STORAGE_CONNECTION_STRING AZURE_STORAGE_ACCESS_TOKEN\n" in found
    assert "AZURE_SECRET_ACCESS_KEY" not in found
    assert "AZURE_ACCESS_KEY_ID" not in found
    assert found.endswith("gdalinfo /vsiaz/maps/a.tif\n")
