"""The part of ``oslo_utils.versionutils`` for plug-ins."""

from roost.scheduler.framework.image_properties import matches_version


def convert_version_to_int(version: str | tuple[int, ...]) -> int:
    """Return a version as one number: 1.2.3 is 1002003."""
    parts = [int(part) for part in version.split(".")] if isinstance(version, str) else list(version)
    number = 0
    for part in parts:
        number = number * 1000 + part
    return number


def convert_version_to_str(version_int: int) -> str:
    """Return the version of a number: 1002003 is 1.2.3."""
    parts: list[str] = []
    while version_int > 0:
        version_int, part = divmod(version_int, 1000)
        parts.insert(0, str(part))
    return ".".join(parts)


class VersionPredicate:
    """Conditions on a version, separated by commas: ``>=6.0, <7``."""

    def __init__(self, predicate_str: str) -> None:
        self._predicate = predicate_str

    def satisfied_by(self, version_str: str) -> bool:
        """Return whether a version meets all conditions."""
        return matches_version(tuple(int(part) for part in version_str.split(".")), self._predicate)
