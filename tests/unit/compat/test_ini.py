import pytest

from roost.compat.ini import read_ini, read_seconds, read_truth
from roost.errors import BadSettings


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("password = pa$tail", "password"),
        ("application_credential_secret = pa$tail", "application_credential_secret"),
        ("connection = mysql://nova:pa$tail@db/nova", "connection"),
        ("password = $other\nother = pa$tail", "password"),
    ],
)
def test_missing_reference_in_a_secret_shows_no_part_of_it(tmp_path, text, option):
    path = tmp_path / "nova.conf"
    path.write_text(f"[placement]\n{text}\n")
    with pytest.raises(BadSettings, match=r"refers to an option which is not set; write \$ as \$\$") as caught:
        read_ini(path).get("placement", option)
    assert "tail" not in str(caught.value)


def test_missing_reference_in_another_option_is_named(tmp_path):
    path = tmp_path / "nova.conf"
    path.write_text("[placement]\ncafile = $folder/ca.pem\n")
    with pytest.raises(BadSettings, match=r"\[placement\] cafile refers to \$folder, which is not set"):
        read_ini(path).get("placement", "cafile")


@pytest.mark.parametrize("text", ["", "maybe", "2"])
def test_truth_is_one_of_the_words_of_oslo(text):
    with pytest.raises(ValueError, match="must be true or false"):
        read_truth(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "soon"])
def test_seconds_are_a_whole_number_above_0(text):
    with pytest.raises(ValueError, match="must be a whole number of seconds above 0"):
        read_seconds(text)
