"""The slow, obvious meaning of a rule: the same sentence in Python, where every check is a fact."""

from hypothesis import strategies as st

# What stands in a rule, and whether it is so for the identity that the tests ask about.
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
    """Return rules as nested tuples."""

    def longer(inner):
        several = st.lists(inner, min_size=2, max_size=4)
        return st.tuples(st.just("not"), inner) | st.tuples(st.sampled_from(["and", "or"]), several)

    return st.recursive(st.sampled_from(sorted(FACTS)), longer, max_leaves=12)


def meaning(sentence):
    """Return what it means."""
    if isinstance(sentence, str):
        return FACTS[sentence]
    word, rest = sentence
    if word == "not":
        return not meaning(rest)
    return all(map(meaning, rest)) if word == "and" else any(map(meaning, rest))


def text(sentence, *, strength=0):
    """Write it with as few brackets as it needs: `not` binds before `and`, `and` before `or`."""
    if isinstance(sentence, str):
        return sentence
    word, rest = sentence
    own = {"or": 1, "and": 2, "not": 3}[word]
    if word == "not":
        found = f"not {text(rest, strength=own)}"
    else:
        found = f" {word} ".join(text(part, strength=own + 1) for part in rest)
    return f"({found})" if own < strength else found
