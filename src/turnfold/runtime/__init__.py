"""Load, plan, summarize, adopt, persist: decisions carried out (SPEC §10)."""
