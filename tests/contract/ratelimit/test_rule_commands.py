"""`tollgate check-config` and `tollgate explain`, as an operator types them."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor
from tollgate.actors.ratelimit.rules.rule_match import Match, match
from tollgate.serve.commands.check_config import check_config, rule_directory
from tollgate.serve.commands.explain import explain, parse_entries

GOOD = "domain: {}\ndescriptors: [{{key: k, rate_limit: {{unit: minute, requests_per_unit: 1}}}}]\n"

SAMPLE_RULES = Path(__file__).parents[3] / "configs" / "ratelimit"


def check(*arguments: object) -> Result:
    return CliRunner().invoke(check_config, [str(each) for each in arguments])


def ask(*arguments: object) -> Result:
    return CliRunner().invoke(explain, [str(each) for each in arguments])


def test_good_files_are_checked_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.yaml").write_text(GOOD.format("a"))
    (tmp_path / "sub" / "b.yml").write_text(GOOD.format("b"))
    result = check(tmp_path, "--strict")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"checking {tmp_path}/a.yaml",
        f"checking {tmp_path}/sub/b.yml",
        "all rate limit configs ok",
    ]
    assert result.stderr == ""


def test_the_first_error_of_every_bad_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("domain: a\ndescriptors: [{value: x}, {key: [}]")
    (tmp_path / "b.yaml").write_text("domain: b\n\nnope: 1\nnor: this\n")
    (tmp_path / "c.yaml").write_text(GOOD.format("c"))
    (tmp_path / "d.yaml").write_text(GOOD.format("c"))
    (tmp_path / "e.yaml").write_text("domain: e\ndescriptors: [{value: x}]")
    result = check(tmp_path)
    assert result.exit_code == 1
    assert "ok" not in result.stdout
    assert result.stderr.splitlines() == [
        f"error: {tmp_path}/a.yaml:2: error loading config file: yaml: line 2: "
        "did not find expected node content",
        f"error: {tmp_path}/b.yaml:3: config error, unknown key 'nope'",
        f"error: {tmp_path}/d.yaml:1: duplicate domain 'c' in config file",
        f"error: {tmp_path}/e.yaml:2: descriptor has empty key",
    ]


def test_one_domain_in_two_files_needs_the_option(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.format("d"))
    (tmp_path / "b.yaml").write_text(GOOD.format("d").replace("key: k", "key: l"))
    assert check(tmp_path).exit_code == 1
    assert check(tmp_path, "--merge-domain-configs").exit_code == 0
    (tmp_path / "c.yaml").write_text(GOOD.format("d"))
    result = check(tmp_path, "--merge-domain-configs")
    assert result.exit_code == 1
    text = f"error: {tmp_path}/c.yaml:2: duplicate descriptor composite key 'd.k'"
    assert result.stderr.splitlines() == [text]


def test_warnings_name_file_and_line(tmp_path: Path) -> None:
    text = (
        "domain: d\ndescriptors:\n- key: k\n  rate_limit:\n    shadow_mode: true\n    unit: day\n"
    )
    (tmp_path / "a.yaml").write_text(text)
    expected = [
        f"warning: {tmp_path}/a.yaml:5: requests_per_unit is missing: "
        "it counts as 0 and blocks every request",
        f"warning: {tmp_path}/a.yaml:5: 'shadow_mode' is ignored in rate_limit: "
        "it belongs in a descriptor",
    ]
    result = check(tmp_path)
    assert result.exit_code == 0
    assert sorted(result.stderr.splitlines()) == sorted(expected)
    assert result.stdout.splitlines()[-1] == "all rate limit configs ok"
    strict = check(tmp_path, "--strict")
    assert strict.exit_code == 1
    assert "ok" not in strict.stdout
    reason = "error: the files could be served, but --strict allows no warnings"
    assert strict.stderr.splitlines() == [*result.stderr.splitlines(), reason]


def test_nothing_to_check(tmp_path: Path) -> None:
    result = check(tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"{tmp_path}: no rule files (*.yaml, *.yml)\n"
    (tmp_path / "a.yaml").symlink_to("nowhere")
    result = check(tmp_path)
    assert result.exit_code == 1
    assert result.stderr == "error: a.yaml: cannot be read: No such file or directory\n"


def test_wrong_usage_is_exit_status_2(tmp_path: Path) -> None:
    result = check(tmp_path / "nowhere")
    assert result.exit_code == 2
    assert result.stderr == f"{tmp_path}/nowhere: not a directory\n"
    assert check().exit_code == 2
    assert check(tmp_path, "--nope").exit_code == 2


def test_the_sample_rules_are_flawless() -> None:
    result = check(SAMPLE_RULES, "--strict")
    assert result.exit_code == 0, result.output


def test_the_sample_rules_do_as_they_say() -> None:
    rules = load_rules(rule_directory(SAMPLE_RULES).read(), merge_domains=False)

    def met(domain: str, question: str) -> Match:
        found = match(rules, domain, RateLimitDescriptor(parse_entries(question)))
        assert isinstance(found, Match), question
        return found

    limited = met("edge", "path=/limited").limit
    assert (limited.requests_per_unit, limited.unit) == (3, Unit.MINUTE)
    assert met("edge", "path=/free").limit.is_unlimited
    assert met("edge", "path=/closed").limit.requests_per_unit == 0
    assert met("edge", "path=/new").is_shadow
    assert met("edge", "path=/orders,method=POST").limit.requests_per_unit == 10
    shared = [met("edge", f"path=/reports/{name}.pdf").counter_entries for name in ("a", "b")]
    assert shared[0] == shared[1]
    own = [met("edge", f"path=/images/{name}").counter_entries for name in ("a", "b")]
    assert own[0] != own[1]
    assert met("tenants", "plan=free,tenant=x").metric_key == "tenants.plan_free.tenant_x"
    assert met("tenants", "plan=pro,tenant=acme").metadata == {"contact": "sales"}
    assert met("tenants", "allowance=acme").is_quota
    export, partner = met("tenants", "operation=export"), met("tenants", "partner=p")
    assert export.limit.name in partner.limit.replaces


def test_explaining_a_hit() -> None:
    result = ask("edge", "path=/limited")
    assert result.exit_code == 0
    assert "  => this limit applies" in result.stdout.splitlines()
    assert "     limit:   3 per minute" in result.stdout.splitlines()


@pytest.mark.parametrize(
    ("domain", "question"),
    [("edge", "path=/nowhere"), ("elsewhere", "path=/limited"), ("tenants", "plan=free")],
)
def test_explaining_a_miss(domain: str, question: str) -> None:
    result = ask(domain, question)
    assert result.exit_code == 1
    assert "the request passes" in result.stdout


def test_explaining_other_rules(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.format("own"))
    (tmp_path / "b.yaml").write_text(GOOD.format("own").replace("key: k", "key: l"))
    assert ask("own", "k=v", "--config", tmp_path, "--merge-domain-configs").exit_code == 0
    result = ask("own", "k=v", "--config", tmp_path)
    assert result.exit_code == 2
    assert result.stderr == "b.yaml:1: duplicate domain 'own' in config file\n"


def test_explaining_the_rules_of_the_settings(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "a.yaml").write_text(GOOD.format("own"))
    (folder / "b.yaml").write_text(GOOD.format("own").replace("key: k", "key: l"))
    settings = {"RUNTIME_ROOT": str(tmp_path), "MERGE_DOMAIN_CONFIG": "true"}
    told = CliRunner().invoke(explain, ["own", "l=v"], env=settings)
    assert told.exit_code == 0, told.output
    assert CliRunner().invoke(explain, ["edge", "path=/limited"], env=settings).exit_code == 1


@pytest.mark.parametrize("question", ["path", "", "path=/a,", "path=/a,=x", ",path=/a"])
def test_a_malformed_descriptor(question: str) -> None:
    result = ask("edge", question)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "write key=value" in result.stderr


def test_entries_are_split_at_the_first_equals_sign() -> None:
    assert parse_entries("path=/a?b=c,user=") == (("path", "/a?b=c"), ("user", ""))


def test_rules_that_are_not_there_are_one_clear_line(tmp_path: Path) -> None:
    result = ask("edge", "k=v", "--config", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert result.stderr == f"{tmp_path}/nowhere: cannot be read: No such file or directory\n"
