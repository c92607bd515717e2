"""What `ray up` and `serve deploy` are given, held valid by Ray's own code before a cluster is."""

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, get_args
from zipfile import ZipFile

import jsonschema
import pytest
import ray
import yaml
from pydantic import BaseModel
from ray import serve as ray_serve
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.serve.schema import ServeDeploySchema

from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import GrpcFront

ROOT = Path(__file__).resolve().parents[3]
RAY = Path(ray.__file__).parent
DOCUMENTATION_RANGE = ip_network("192.0.2.0/24")
HOME = "/nobody"


def cluster() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


def serve_config() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "configs/serve.yaml").read_text())


def ray_env() -> dict[str, str]:
    """The variables as a shell on a node would export them."""
    script = "set -a && . configs/ray.env && set +a && env -0"
    exported = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env={"HOME": HOME}, check=True, capture_output=True
    )
    pairs = (item.partition("=") for item in exported.stdout.decode().split("\0"))
    return {
        name: value for name, _, value in pairs if name.startswith(("RAY_", "FORWARDED_", "GRPC_"))
    }


def unknown_keys(model: type[BaseModel], data: dict[str, Any], where: str = "") -> Iterator[str]:
    """Keys at any level that a schema would let pass without a word."""
    for key, value in data.items():
        field = model.model_fields.get(key)
        if field is None:
            yield f"{where}{key}"
            continue
        for inner in models_in(field.annotation):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    yield from unknown_keys(inner, item, f"{where}{key}.")


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that `Optional[List[Model]]` and the like are about."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_in(inner)]


# cluster.yaml


def test_ray_accepts_the_cluster() -> None:
    prepared = prepare_config(cluster())
    validate_config(prepared)
    nodes = prepared["available_node_types"]["local.cluster.node"]
    assert nodes["min_workers"] == nodes["max_workers"] == 2


def test_ray_refuses_a_misspelt_key() -> None:
    config = cluster() | {"setup_command": []}
    with pytest.raises(jsonschema.ValidationError, match="setup_command"):
        validate_config(prepare_config(config))


def test_its_addresses_are_examples() -> None:
    provider = cluster()["provider"]
    addresses = [provider["head_ip"], *provider["worker_ips"]]
    assert all(ip_address(address) in DOCUMENTATION_RANGE for address in addresses)


def test_everything_that_is_mounted_exists() -> None:
    mounts = [path for path in cluster()["file_mounts"].values() if not path.startswith("~")]
    assert mounts
    assert [path for path in mounts if not (ROOT / path).exists()] == []


def test_every_command_is_a_shell_command() -> None:
    config = cluster()
    for kind in ("setup", "head_start_ray", "worker_start_ray"):
        for command in config[f"{kind}_commands"]:
            subprocess.run(["bash", "-n", "-c", command], check=True)


def test_nodes_are_made_from_the_lock() -> None:
    assert any("scripts/environment runtime" in line for line in cluster()["setup_commands"])
    mounted = cluster()["file_mounts"].values()
    assert {"requirements.lock", "pyproject.toml", "scripts"} <= set(mounted)


def test_tollgate_can_be_installed_from_what_is_mounted(tmp_path: Path) -> None:
    node = tmp_path / "tollgate"
    node.mkdir()
    for target, source in cluster()["file_mounts"].items():
        if not target.startswith("~/tollgate/"):
            continue
        # As rsync brings them: links stay links.
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, node / source, symlinks=True)
        else:
            shutil.copy(ROOT / source, node / source)
    python = Path(sys.executable)
    build = [python.with_name("uv"), "build", "--wheel", "--no-build-isolation", "--offline"]
    subprocess.run(
        [*build, "--python", python, "--out-dir", tmp_path, node], check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    assert {
        "tollgate/actors/ratelimit/counting/actor.py",
        "tollgate/serve/cli.py",
        "tollgate/configs/ray.env",
    } <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"tollgate"}


def test_ray_starts_with_its_environment() -> None:
    config = cluster()
    starts = config["head_start_ray_commands"] + config["worker_start_ray_commands"]
    assert len(starts) == 4
    for command in starts:
        words = shlex.split(command)
        assert words.index("configs/ray.env") < words.index(".venv/bin/ray")


# configs/serve.yaml


def test_serve_accepts_the_applications() -> None:
    schema = ServeDeploySchema.model_validate(serve_config())
    assert schema.http_options.port == 8080
    prefixes = {app.name: app.route_prefix for app in schema.applications}
    assert prefixes == {
        "ratelimit": "/",
        "payments": "/payments",
        "catalog-auth": "/catalog-auth",
    }


def test_serve_ignores_nothing_in_it() -> None:
    assert list(unknown_keys(ServeDeploySchema, serve_config())) == []


@pytest.mark.parametrize(
    "path",
    [
        [],
        ["http_options"],
        ["logging_config"],
        ["applications", 0],
        ["applications", 0, "deployments", 0],
        ["applications", 0, "deployments", 0, "ray_actor_options"],
    ],
)
def test_an_ignored_key_is_found(path: list[Any]) -> None:
    config = serve_config()
    block = config
    for step in path:
        block = block[step]
    block["num_replica"] = 1
    keys = [step for step in path if isinstance(step, str)]
    assert list(unknown_keys(ServeDeploySchema, config)) == [".".join([*keys, "num_replica"])]


def test_the_applications_can_be_built() -> None:
    for application in serve_config()["applications"]:
        name, builder = application["import_path"].split(":")
        module = import_module(name)
        built = getattr(module, builder)({})
        assert isinstance(built, ray_serve.Application)
        (deployment,) = application["deployments"]
        assert deployment["name"] == built._bound_deployment.name


# configs/ray.env


def test_the_environment_has_a_reason_for_every_block() -> None:
    blocks = re.findall(r"(?m)(?:^#.*\n)+(?:^\w+=\S+\n)+", (ROOT / "configs/ray.env").read_text())
    explained = {name for block in blocks for name in re.findall(r"(?m)^(\w+)=", block)}
    assert explained == set(ray_env())


def test_ray_knows_every_name() -> None:
    serve_names = names_in(RAY / "serve/_private/constants.py")
    other_names = set().union(
        names_in(RAY / "dashboard/modules/metrics/metrics_head.py"),
        names_in(RAY / "_common/usage/usage_constants.py"),
        names_in(RAY / "_private/authentication_test_utils.py"),
    )
    core = (RAY / "_raylet.so").read_bytes()
    for name in ray_env().keys() - {"FORWARDED_ALLOW_IPS", "GRPC_HOST"}:  # (uvicorn's and ours)
        known = serve_names if name.startswith("RAY_SERVE_") else other_names
        assert name in known or name.encode() in core, f"Ray does not read {name}"


def test_a_cluster_patches_haproxy_as_one_machine_does() -> None:
    variables = ray_env()
    program = variables["RAY_SERVE_HAPROXY_BINARY_PATH"].replace(HOME, "~")
    write = f"-m tollgate.serve.node.haproxy {program.removesuffix('/haproxy')}"
    assert any(write in command for command in cluster()["setup_commands"])
    assert variables["FORWARDED_ALLOW_IPS"] not in ("", "*")


def names_in(path: Path) -> set[str]:
    """The strings of a module."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_haproxy_keeps_nothing_where_everybody_writes() -> None:
    source = (RAY / "serve/_private/constants.py").read_text()
    shared = set(re.findall(r'"(RAY_SERVE_HAPROXY_\w+)",\s*"/tmp', source))
    assert shared
    variables = ray_env()
    for name in shared:
        assert variables[name].startswith(f"{HOME}/.tollgate/haproxy")
    private = "mkdir -p -m 700 ~/.tollgate/haproxy"
    assert any(private in command for command in cluster()["setup_commands"])


def test_the_fronts_of_a_cluster_are_reached_from_other_machines() -> None:
    settings = Settings.from_environment(ray_env())
    assert settings.grpc.host == "0.0.0.0"
    assert settings.grpc_front is GrpcFront.GRPCIO  # (which bounds a message)


def test_serve_reads_it_as_it_is_meant() -> None:
    names = ["RAY_SERVE_ENABLE_HA_PROXY", "RAY_SERVE_THROUGHPUT_OPTIMIZED"]
    names += ["RAY_SERVE_HAPROXY_NBTHREAD", "REQUEST_LATENCY_BUCKETS_MS"]
    program = "import json\nfrom ray.serve._private import constants\n"
    program += f"print(json.dumps([getattr(constants, name) for name in {names}]))"
    answer = subprocess.run(
        [sys.executable, "-c", program], env=ray_env(), check=True, capture_output=True
    )
    is_haproxy, is_optimized, threads, buckets = json.loads(answer.stdout)
    assert (is_haproxy, is_optimized, threads) == (True, True, 1)
    assert buckets[0] == 0.25
    assert buckets == sorted(buckets)


def test_token_authentication_is_said_outright() -> None:
    variables = ray_env()
    assert variables["RAY_AUTH_MODE"] == "token"
    token = variables["RAY_AUTH_TOKEN_PATH"].replace(HOME, "~")
    assert cluster()["file_mounts"][token]
