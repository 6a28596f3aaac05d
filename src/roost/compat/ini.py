"""INI files of OpenStack services: repeated options, continuation lines, and references between values."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from roost.errors import BadSettings, unreadable_settings

_OPTION = re.compile(r"([^=:]+?)\s*[=:]\s*(.*)")
_SUBSTITUTE = re.compile(r"\\?\$(?:\$|(?P<plain>\w+)|\{(?P<braced>[\w.]+)\})|\\\$")
_DEPTH_MAX = 10
# Options with a password, a token or a key: errors show no part of their values. So do values with a URL.
_SECRET = re.compile(r"passw|secret|token|passphrase|passcode|_key\b")
_TRUTHS = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}


class Ini:
    """The content of a file: sections of options with their values in order.

    Args:
        path: the file's path, for error messages.
        sections: section -> option -> values.
        lines: line number of each option's last value, by section and option.
    """

    def __init__(
        self, path: str, sections: Mapping[str, Mapping[str, list[str]]], lines: Mapping[tuple[str, str], int]
    ) -> None:
        self.path = path
        self.sections = sections
        self.lines = lines

    def get(self, section: str, option: str) -> str | None:
        """Return the last value of an option, with references expanded; None if it is not set.

        Raises:
            BadSettings: the value refers to a missing option.
        """
        values = self.sections.get(section, {}).get(option)
        return None if not values else self._expand(values[-1], section, option)

    def get_all(self, section: str, option: str) -> list[str]:
        """Return all values of an option in order, with references expanded."""
        return [self._expand(value, section, option) for value in self.sections.get(section, {}).get(option, ())]

    def get_list(self, section: str, option: str) -> list[str]:
        """Return all values of an option that may be repeated, comma-separated, or both."""
        return [part for value in self.get_all(section, option) for part in split_list(value)]

    def options(self) -> Iterator[tuple[str, str]]:
        """Yield every section and option."""
        for section, options in self.sections.items():
            for option in options:
                yield section, option

    def _expand(self, text: str, section: str, option: str, *, depth: int = 0, is_secret: bool = False) -> str:
        is_secret = is_secret or "://" in text or _SECRET.search(option) is not None

        def value(match: re.Match[str]) -> str:
            name = match["plain"] or match["braced"]
            if name is None or match[0].startswith("\\"):
                return match[0].removeprefix("\\").replace("$$", "$")
            named_section, _, key = name.rpartition(".")
            for target in (named_section,) if named_section else (section, "DEFAULT"):
                values = self.sections.get(target, {}).get(key)
                if values and depth < _DEPTH_MAX:
                    return self._expand(values[-1], target, key, depth=depth + 1, is_secret=is_secret)
            if is_secret:  # The text after $ may be a part of a password.
                problem = f"[{section}] {option} refers to an option which is not set; write $ as $$"
                raise BadSettings(self.path, problem)
            raise BadSettings(self.path, f"[{section}] {option} refers to ${name}, which is not set")

        return _SUBSTITUTE.sub(value, text)


def split_list(text: str) -> list[str]:
    """Split a comma-separated value.

    >>> split_list("a, b,,c")
    ['a', 'b', 'c']
    """
    return [part for part in map(str.strip, text.split(",")) if part]


def read_truth(text: str) -> bool:
    """Return the value of a boolean option.

    Raises:
        ValueError: the text means neither true nor false.

    >>> read_truth(" On"), read_truth("0")
    (True, False)
    """
    try:
        return _TRUTHS[text.strip().lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def read_seconds(text: str) -> float:
    """Return the value of an option with a time, in seconds.

    Raises:
        ValueError: the text is not a whole number above 0.

    >>> read_seconds("60")
    60.0
    """
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("must be a whole number of seconds above 0")
    return float(text)


def read_ini(path: Path) -> Ini:
    """Read a file.

    Raises:
        BadSettings: the file cannot be read, or a line is invalid.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable_settings(str(path), error) from None
    except UnicodeDecodeError:
        raise BadSettings(str(path), "is not UTF-8 text") from None
    return _parse(str(path), text)


def _parse(path: str, text: str) -> Ini:
    sections: dict[str, dict[str, list[str]]] = {}
    lines: dict[tuple[str, str], int] = {}
    name = ""  # current section
    values: list[str] | None = None  # values of the option that the next line may continue
    section: dict[str, list[str]] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or line[0] in "#;":
            values = values if stripped else None
        elif line[0].isspace():
            if values is None:
                raise BadSettings(f"{path}:{number}", "this line continues no option")
            values[-1] = f"{values[-1]}\n{stripped}"
        elif line[0] == "[":
            if not stripped.endswith("]") or len(stripped) < 3:
                raise BadSettings(f"{path}:{number}", "a section is not closed, or has no name")
            name = stripped[1:-1]
            section, values = sections.setdefault(name, {}), None
        else:
            option = _OPTION.fullmatch(stripped)
            if option is None:
                raise BadSettings(f"{path}:{number}", "is neither OPTION = VALUE nor [SECTION]")
            if section is None:
                raise BadSettings(f"{path}:{number}", f"an option has no section{_advice(option[1])}")
            values = section.setdefault(option[1], [])
            values.append(_unquote(option[2]))
            lines[name, option[1]] = number
    return Ini(path, sections, lines)


def _unquote(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _advice(option: str) -> str:
    """Return advice if an option looks like a command-line option, ``--section.name``; else an empty string."""
    section, _, name = option.removeprefix("--").rpartition(".")
    return f"; write [{section}] and below it {name} = VALUE" if option.startswith("--") and section else ""
