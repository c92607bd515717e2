"""The folders that Ray leaves behind, on a real disk."""

from pathlib import Path

from tollgate.serve.node.ray_start import remove_old_sessions


def test_the_last_ones_stay_and_there_is_room_for_one_more(tmp_path: Path) -> None:
    names = [f"session_2026-11-{day:02}_04-00-00_000001_{9_999 - day}" for day in range(1, 8)]
    for name in names:
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "logs" / "raylet.out").write_text("…")
    (tmp_path / "session_latest").symlink_to(tmp_path / names[-1])
    (tmp_path / "prom_metrics_service_discovery.json").write_text("[]")
    remove_old_sessions(tmp_path, sessions_max=3)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "prom_metrics_service_discovery.json",
        *names[-2:],
        "session_latest",
    ]


def test_a_first_start_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_old_sessions(tmp_path / "ray")
    assert not (tmp_path / "ray").exists()
