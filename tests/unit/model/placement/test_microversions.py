import pytest

from roost.model.placement.microversions import NEWEST, OLDEST, InvalidVersion, UnknownVersion, Version, parse_version


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, OLDEST),
        ("", OLDEST),
        ("placement", OLDEST),
        ("compute 2.1", OLDEST),
        ("placement 1.10", Version(1, 10)),
        ("PLACEMENT\t1.2 ", Version(1, 2)),
        ("placement 1.3,compute 2.1, placement 1.5", Version(1, 5)),
        ("placement 1.3,", Version(1, 3)),
        ("placement latest", NEWEST),
    ],
)
def test_last_placement_version_in_the_header_applies(header, version):
    assert parse_version(header) == version


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1.2.3", "invalid literal for int() with base 10: '2.3'"),
        ("pony.horse", "invalid literal for int() with base 10: 'pony'"),
        ("1", "Version.__new__() missing 1 required positional argument: 'minor'"),
        ("1.", "invalid literal for int() with base 10: ''"),
        ("Latest", "invalid literal for int() with base 10: 'Latest'"),
    ],
)
def test_malformed_version_error_gives_the_reason(text, reason):
    with pytest.raises(InvalidVersion) as caught:
        parse_version(f"placement {text}")
    assert str(caught.value) == f"{text}; {reason}"


@pytest.mark.parametrize("text", ["1.40", "0.9", "2.0", "1.-1", "1.99999999999999999999"])
def test_unknown_version_error_quotes_the_version(text):
    with pytest.raises(UnknownVersion, match=text):
        parse_version(f"placement {text}")
