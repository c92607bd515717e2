"""Keys for signing, from the variables of the `s3` scheme (B2).

<CLOUD>_ACCESS_KEY_ID, <CLOUD>_SECRET_ACCESS_KEY   the keys, and <CLOUD>_SESSION_TOKEN if any
<CLOUD>_PROFILE, <CLOUD>_CONFIG_FILE               or a profile in a file of the AWS tools
<CLOUD>_NO_SIGN_REQUEST                            YES: there are none, whatever else is set
"""

from collections.abc import Callable, Mapping
from configparser import ConfigParser
from configparser import Error as MalformedError

from tollgate.serve.catalog_auth.sign.signer import SigningCredentials

_YES = ("YES", "TRUE", "1", "ON")


class BadCredentialsError(Exception):
    """The variables or the file are wrong: the error says what, and where."""


def credentials_from_environment(
    environment: Mapping[str, str], read: Callable[[str], str], cloud: str = "AWS"
) -> SigningCredentials | None:
    """The keys of this cloud; None when none are set, or signing is switched off. `read` gives the
    text of a file. Raises BadCredentialsError; whatever `read` raises is its own."""
    if environment.get(f"{cloud}_NO_SIGN_REQUEST", "NO").strip().upper() in _YES:
        return None
    key, secret = (f"{cloud}_ACCESS_KEY_ID", f"{cloud}_SECRET_ACCESS_KEY")
    if environment.get(key) and environment.get(secret):
        token = environment.get(f"{cloud}_SESSION_TOKEN") or None
        return SigningCredentials(environment[key], environment[secret], token)
    for name, other in ((key, secret), (secret, key)):
        if environment.get(name):
            raise BadCredentialsError(f"{name} is set, and {other} is not: set both or none")
    profile, file = environment.get(f"{cloud}_PROFILE"), environment.get(f"{cloud}_CONFIG_FILE")
    if not profile and not file:
        return None
    if not file:
        raise BadCredentialsError(f"{cloud}_PROFILE is set: name its file in {cloud}_CONFIG_FILE")
    return credentials_from_profile(read(file), profile or "default", file)


def credentials_from_profile(text: str, profile: str, file: str) -> SigningCredentials:
    """The keys of a profile, `[name]` or `[profile name]`, in the text of `file`. Raises
    BadCredentialsError."""
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except MalformedError as error:
        line = getattr(error, "lineno", None)
        where = f"{file}:{line}" if line else file
        raise BadCredentialsError(f"{where} is not written as the AWS tools' files are") from None
    for section in (profile, f"profile {profile}"):
        if parser.has_section(section):
            return _keys(parser, section, file)
    raise BadCredentialsError(f"{file} has no profile {profile!r}")


def _keys(parser: ConfigParser, section: str, file: str) -> SigningCredentials:
    key = parser.get(section, "aws_access_key_id", fallback="")
    secret = parser.get(section, "aws_secret_access_key", fallback="")
    if not key or not secret:
        raise BadCredentialsError(
            f"{file}: [{section}] needs aws_access_key_id and aws_secret_access_key"
        )
    return SigningCredentials(key, secret, parser.get(section, "aws_session_token", fallback=None))
