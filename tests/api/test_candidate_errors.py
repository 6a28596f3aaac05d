import pytest

from tests.support.fleets.forests import state_of, uuid_of
from tests.support.fleets.shared_disks import WORLD, allocation_texts, query_candidates, refusal_of
from tests.support.servers.candidate_urls import Columns


@pytest.fixture
def columns():
    """The worked example behind the API."""
    return Columns(state_of(WORLD))


FORM = (
    "Badly formed resources parameter. Expected resources query string parameter in form: "
    "?resources=VCPU:2,MEMORY_MB:1024. Got: "
)
TRAITS = (
    "Invalid query string parameters: Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC. "
)
IN_TRAITS = TRAITS.replace("HW", "in:HW").replace("!", "")
ANY = "Invalid query string parameters: The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' "
NO_UUID = "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: "
TOO_MUCH = "Requested resource VCPU requires amount <= 9223372036854775807. Got: 9223372036854775808."
NO_TREE = "Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. Got: "
SEVERAL = (
    "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
    "using the valid microversion. Got: "
)
FORBIDDEN = "Forbidden member_of parameters are not supported in the specified microversion"
ORPHANED_TRAITS = "All traits parameters must be associated with resources.  Found the following orphaned traits keys: "
ORPHANED_MEMBERS = (
    "All member_of parameters must be associated with resources. Found the following orphaned member_of keys: "
)
NO_UTF8 = "Invalid query string parameters: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
RESOURCELESS = "Resourceless suffixed group request should be specified in `same_subtree` query param: bad group(s) - "
CONFLICT = "Conflicting required and forbidden traits found in the following traits keys: "
POLICY = 'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
D = "resources=DISK_GB:1&"
OTHER = str(uuid_of("other"))


@pytest.mark.parametrize(
    ("query", "version", "text"),
    [
        ("resources=", 39, FORM + "empty string."),
        ("resources=VCPU:1,", 39, FORM + "."),
        ("resources=VCPU:1:2", 10, FORM + "VCPU:1:2."),
        ("resources=VCPU:", 39, "Requested resource VCPU expected positive integer amount. Got: ."),
        ("resources=VCPU:1.5", 39, "Requested resource VCPU expected positive integer amount. Got: 1.5."),
        ("resources=VCPU:9223372036854775808", 39, TOO_MUCH),
        ("resources= ", 39, FORM + "empty string."),
        ("resources=VCPU:-01", 39, "Requested resource VCPU requires amount >= 1. Got: -1."),
        ("resources=bad&resources=VCPU:1", 39, FORM + "bad."),
        ("resources=vcpu:1", 39, "Invalid resource class in resources parameter: No such resource class vcpu."),
        (D + "required=CUSTOM_B,", 39, TRAITS + "Got an empty trait in: CUSTOM_B,"),
        (D + "required=!!", 22, TRAITS + "Got an empty trait in: !!"),
        (D + "required=", 21, TRAITS.replace("!", "") + "Got an empty trait in: "),
        (D + "required=!CUSTOM_B", 21, TRAITS.replace("!", "") + "Got: !CUSTOM_B"),
        (D + "required=in:CUSTOM_B", 38, ANY + "only supported since microversion 1.39. Got: in:CUSTOM_B"),
        (D + "required=in:A,!B", 39, ANY + "does not support forbidden traits. Got: in:A,!B"),
        (D + "required=in:A,,!B", 39, IN_TRAITS + "Got an empty trait in: in:A,,!B"),
        (D + "required=!in:A,CUSTOM_B", 39, "No such trait(s): in:A."),
        (D + "required=CUSTOM_NO,CUSTOM_NEVER", 39, "No such trait(s): CUSTOM_NO."),
        (D + "required=CUSTOM_B&required=", 38, TRAITS + "Got an empty trait in: "),
        (D + f"member_of={OTHER}&member_of={OTHER}", 23, "Multiple member_of parameters are not supported"),
        (D + f"member_of={OTHER},{OTHER}", 39, f"{SEVERAL}{OTHER},{OTHER}"),
        (D + "member_of=in:no", 39, NO_UUID + "no"),
        (D + "member_of=c0ffee00c0ffee00c0ffee00c0ffee0_", 39, NO_UUID + "c0ffee00c0ffee00c0ffee00c0ffee0_"),
        (D + f"member_of=!!{OTHER}", 39, f"{NO_UUID}!{OTHER}"),
        (D + f"member_of=!{OTHER}", 31, FORBIDDEN),
        (D + "in_tree=no", 31, NO_TREE + "no"),
        ("", 35, "At least one request group (`resources` or `resources{$S}`) is required."),
        (f"{D}in_tree1={OTHER}", 35, "All request groups must specify resources."),
        (f"{D}required2=A&required1=B&member_of3={OTHER}", 35, ORPHANED_TRAITS + "required2, required1"),
        (f"{D}member_of3={OTHER}", 35, ORPHANED_MEMBERS + "member_of3"),
        (D + "required=B,A,!A,!B,A", 39, CONFLICT + "required: (A), required: (A), required: (B)"),
        (D + "required=in:A,B&required=!A,!B", 39, CONFLICT + "required: (A, B)"),
        (
            f"{D}required=A,!A&resources1=VCPU:1&required1=B,!B&resources_=VCPU:1&required_=!C,C",
            39,
            CONFLICT + "required1: (B), required: (A), required_: (C)",
        ),
        ("resources1=VCPU:1&resources2=VCPU:1", 25, POLICY),
        ("resources1=VCPU:1&required2=A&same_subtree=1,2", 36, POLICY),
        ("resources=%FF", 39, NO_UTF8),
    ],
)
def test_error_texts_are_those_of_placement(columns, query, version, text):
    code = "placement.undefined_code" if version >= 23 else ""
    assert refusal_of(columns, query, version) == (code, text)


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        (
            "root_required=A&root_required=A&resources=bad",
            "duplicate_key",
            "Query parameter 'root_required' may be specified only once.",
        ),
        (
            "root_required=A,!A&same_subtree=&resources=bad",
            "bad_value",
            "Conflicting required and forbidden traits found in root_required: A",
        ),
        (
            "same_subtree=&resources=bad",
            "bad_value",
            "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
        ),
        ("required=A", "missing_value", "There must be at least one resources or resources[$S] parameter."),
        (
            "resources=VCPU:1&required_b=A&required_a=B",
            "bad_value",
            RESOURCELESS + "['_a', '_b'].",
        ),
        (
            "resources_b=VCPU:1&resources=VCPU:1&same_subtree=_c,_a",
            "bad_value",
            "Real suffixes should be specified in `same_subtree`: ['_a', '_c'] not found in ['_b', ''].",
        ),
    ],
)
def test_newer_errors_have_a_code(columns, query, code, text):
    assert refusal_of(columns, query) == (f"placement.query.{code}", text)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=abc&limit=5&root_required=&resources=bad", "'abc' does not match"),
        ("root_required=&same_subtree=&resources=bad", "Got an empty trait"),
        ("in_tree=no&member_of=no&required=&resources=bad", "'in_tree'"),
        ("resources=VCPU:1&member_of=no&resources=bad", "'member_of'"),
        ("required=&member_of=no", "Got an empty trait"),
        ("required2=A,!A&resources=VCPU:1", "Resourceless"),
        ("resources1=VCPU:1&resources2=NO:1&required1=A,!A", "Conflicting"),
        ("resources1=VCPU:1&resources2=NO:1", "group_policy"),
        ("resources=NO:1&root_required=CUSTOM_NO", "No such trait(s): CUSTOM_NO."),
        ("resources=NO:1&required=CUSTOM_NO", "No such resource class NO."),
        (f"resources=VCPU:1&in_tree={OTHER}&required=CUSTOM_NO", "CUSTOM_NO"),
    ],
)
def test_first_of_two_errors_is_reported(columns, query, message):
    assert message in refusal_of(columns, query)[1]


@pytest.mark.parametrize(
    "query",
    [
        "resources=CUSTOM_NO:1&root_required=CUSTOM_C",
        f"resources=VCPU:1&member_of={OTHER}&required=CUSTOM_NO",
        "resources=VCPU:9&resources1=CUSTOM_NO:1",
    ],
)
def test_names_are_not_looked_up_after_an_empty_result(columns, query):
    assert query_candidates(columns, query)["allocation_requests"] == []


def test_amounts_beyond_any_inventory_are_valid(columns):
    for amount in (2**31, 2**63 - 1, "1_0"):
        assert query_candidates(columns, f"resources=VCPU:{amount}")["allocation_requests"] == []


def test_last_repeated_required_counts_before_version_1_39(columns):
    query = "resources=DISK_GB:1&required=&required=CUSTOM_B"
    assert allocation_texts(query_candidates(columns, query, 38)) == ["ss=DISK_GB:1"]
    assert refusal_of(columns, query)[1].startswith(TRAITS)


def test_parameters_by_version(columns):
    def error_message(query, version):
        return (
            refusal_of(columns, query, version)[1].removeprefix("Invalid query string parameters: ").partition("\n")[0]
        )

    assert error_message("foo=1&resources=VCPU:1", 10).startswith(
        "Additional properties are not allowed ('foo' was unexpected)  Failed validating 'additionalProperties'"
    )
    assert error_message("limit=1", 16).startswith("'resources' is a required property")
    for version, names in (
        (25, ["member_of", "required", "resources"]),
        (31, ["in_tree", "member_of", "required", "resources"]),
    ):
        patterns = ", ".join(f"'^{name}([1-9][0-9]*)?$'" for name in names)
        assert error_message("resources_a=VCPU:1", version).startswith(
            f"'resources_a' does not match any of the regexes: {patterns}"
        )
    for query, version in (
        ("limit=1", 15),
        ("required=CUSTOM_A", 16),
        ("member_of=no", 20),
        ("group_policy=none", 24),
        ("in_tree=no", 30),
        ("resources0=VCPU:1", 32),
        ("root_required=no", 34),
        ("same_subtree=no", 35),
    ):
        assert "Failed validating 'additionalProperties'" in error_message(f"resources=VCPU:1&{query}", version)
    assert error_message("resources=VCPU:1&limit=0", 16).startswith("'0' does not match '^[1-9][0-9]*$'")
    assert error_message("resources=VCPU:1&group_policy=x", 25).startswith("'x' is not one of ['none', 'isolate']")


def test_candidates_require_version_1_10(api):
    assert api.get("/allocation_candidates?resources=VCPU:1", version="1.9").status == 404
    assert api.post("/allocation_candidates", {}).headers["allow"] == "GET"
    assert api.get("/allocation_candidates?resources=VCPU:1").json == {
        "allocation_requests": [],
        "provider_summaries": {},
    }
