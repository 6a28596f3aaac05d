"""A slow, obvious evaluation of policy rules, in which every check is a known fact."""

from hypothesis import strategies as st

# Each check of a rule, and its result for the identity of the tests.
FACTS = {
    "@": True,
    "!": False,
    "role:admin": True,
    "role:ADMIN": True,
    "role:service": False,
    "project_id:%(project_id)s": True,
    "project_id:other": False,
    "user_id:bob": True,
    "user_id:%(nothing)s": False,
    "is_admin:True": True,
    "is_admin:False": False,
    "'shop':%(project_id)s": True,
    "system_scope:all": False,
    "rule:yes": True,
    "rule:no": False,
}


def sentences():
    """Return a strategy for rules as nested tuples."""

    def combine(inner):
        several = st.lists(inner, min_size=2, max_size=4)
        return st.tuples(st.just("not"), inner) | st.tuples(st.sampled_from(["and", "or"]), several)

    return st.recursive(st.sampled_from(sorted(FACTS)), combine, max_leaves=12)


def meaning(sentence):
    """Return the result of a rule."""
    if isinstance(sentence, str):
        return FACTS[sentence]
    word, rest = sentence
    if word == "not":
        return not meaning(rest)
    return all(map(meaning, rest)) if word == "and" else any(map(meaning, rest))


def text(sentence, *, strength=0):
    """Return the text of a rule with a minimum of brackets: `not` binds before `and`, `and` before `or`."""
    if isinstance(sentence, str):
        return sentence
    word, rest = sentence
    own = {"or": 1, "and": 2, "not": 3}[word]
    if word == "not":
        found = f"not {text(rest, strength=own)}"
    else:
        found = f" {word} ".join(text(part, strength=own + 1) for part in rest)
    return f"({found})" if own < strength else found
