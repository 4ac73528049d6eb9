"""The order of Slurm's accounts that tie, which no file holds, from the FairShare that sshare states of their users."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fairopt.importing.slurm_facts import Facts, Key
from fairopt.importing.slurm_unread import TIED
from fairopt.program import INFINITY, Number


def settle_ties(facts: Facts, usage: Mapping[Key, Number]) -> None:
    """Put accounts that tie in the order in which Fair Tree went through them, as the FairShare of their users says.

    Slurm takes tied accounts in the order of its own list, which no file holds: in 22.05 the newest first once it was
    started again, by name after an account was added meanwhile; since 23.11 by name. Classic multifactor, which states
    a FairShare of accounts, too, has no such order.

    Source: Slurm 22.05.8, src/common/assoc_mgr.c, _post_assoc_list and assoc_mgr_update_assocs; asked live. Slurm
    284c3b95, src/common/slurmdb_defs.c, _sort_assoc_by_lineage_asc: read.
    """
    known, under, everybody = facts.associations, dict[str, list[Number]](), list[Number]()
    if any("FairShare" in found.declared for key, found in known.items() if not key[1]):
        return
    for found in known.values():
        if "FairShare" in found.declared:
            everybody.append(found.declared["FairShare"])
            at = found.parent
            while at:
                under.setdefault(at, []).append(found.declared["FairShare"])
                at = known[at, "", ""].parent
    groups: dict[tuple[str, Number], list[Key]] = {}
    passes, endless = set[str](), set[str]()  # accounts with one of Fairshare=parent inside, or without limit inside
    for key, found in known.items():
        if not found.parent:
            continue
        over, share, used = found.parent, found.weight or 0, usage.get(key, 0)
        if found.tier and not key[1]:
            passes.add(over)
            continue
        while known[over, "", ""].tier and known[over, "", ""].parent:  # with Fairshare=parent it hands on
            over = known[over, "", ""].parent
        level = Fraction(share) / used if used else INFINITY if share else 0
        if level == INFINITY or found.tier:
            endless.add(over)
        if not key[1]:
            groups.setdefault((over, level), []).append(key)
    places = list(known)
    for tied in groups.values():
        inside = [value for key in tied for value in under.get(key[0], ())]
        if len(tied) < 2 or not inside:
            continue
        # users of an account have the rank of whoever came before where an account without users that ties stands first
        shared = everybody.count(max(inside)) > inside.count(max(inside))
        # what is in an account of Fairshare=parent comes after it, and so does not tie with who came before
        first: Mapping[Key, tuple[Number, ...]] = {
            key: (-max(own), -min(own), key[0] not in passes - endless)
            if (own := under.get(key[0]))
            else (-INFINITY if shared else INFINITY,)
            for key in tied
        }
        at_ = sorted(map(places.index, tied))
        for place, key in zip(at_, sorted(tied, key=lambda key: first[key]), strict=True):
            places[place] = key
        names = ", ".join(key[0] for key in sorted(tied, key=lambda key: first[key]))
        facts.note("sshare", "FairShare", names, TIED)
    facts.associations = {key: known[key] for key in places}
