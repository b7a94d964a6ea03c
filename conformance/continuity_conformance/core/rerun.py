"""The options that make a command test the same target again."""


def target_arguments(target: str | None, profile: str | None) -> list[str]:
    """`--target` and `--profile` of a run. A profile that starts the target is enough; the name of a bundled target would be wrong."""
    started_by_profile = profile is not None and "://" not in (target or "")
    given = [] if target is None or started_by_profile else ["--target", target]
    return [*given, *(["--profile", profile] if profile is not None else [])]
