"""JSON Schema (2020-12) of a configuration document, from the same types and rules that check it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from turnfold.config.checking import RuleTable

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema(document: type, rules: RuleTable, *, title: str) -> dict[str, Any]:
    """Return the schema of a document: types, limits, and the rules between fields as conditions."""
    (root,), definitions = msgspec.json.schema_components([document], ref_template="#/$defs/{name}")
    for owner, table in rules.items():
        if table and owner.__name__ in definitions:
            definitions[owner.__name__]["allOf"] = [rule.schema() for rule in table]
    return {"$schema": DIALECT, "title": title, **root, "$defs": definitions}
