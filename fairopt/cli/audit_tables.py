"""An audit for people: how everybody stands, why, what is broken and what mends it, and what policies would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from textwrap import shorten
from typing import TYPE_CHECKING

from rich.text import Text

from fairopt.audit import Audit, EntitlementStatus, Explanation, NodeStatus, WhatIf
from fairopt.audit.alternatives import Alternative
from fairopt.audit.status import statuses
from fairopt.cli.tables import answers, say, table_of, texts
from fairopt.numbers import counted, four_digits
from fairopt.program import INFINITY, Number, number_text
from fairopt.properties import Verdict
from fairopt.properties.verdict import MARKS
from fairopt.report import Statement

if TYPE_CHECKING:
    from fairopt.audit.series import AuditSeries

#: The most rows, reasons and things without a place that are shown unless all are asked for.
ROWS, REASONS, UNPLACED = 40, 12, 5
#: The longest line of what has no place.
SHORT = 160
STYLES: Mapping[EntitlementStatus, str] = {
    EntitlementStatus.STARVED: "red",
    EntitlementStatus.BORROWING: "yellow",
    EntitlementStatus.IDLE: "dim",
}
#: Sums over time, as a head says them, and what they are called in `AuditSeries`.
HOURS = {"held": "holds", "owed": "owed", "borrowed": "borrows", "short": "short"}
#: Who is shown first.
ORDER = {each: number for number, each in enumerate(EntitlementStatus)}


def audit(found: Audit, *, in_full: bool) -> None:
    """Print an audit."""
    accounts = found.accounts
    there = zip(accounts.market.types, accounts.market.capacity, accounts.all_held, accounts.free, strict=True)
    gpus = ", ".join(
        f"{number_text(count)} {kind} ({f'{free} free' if held <= count else f'{bound(held)} held, too many'})"
        for kind, count, held, free in there
    )
    pending = int(accounts.gangs.pending.sum())
    said = accounts.said
    groups = f" in {len(said.groups)} group{'s' * (len(said.groups) > 1)}" if said.groups else ""
    by = f", read by {found.source}" if found.source else ""
    runs = len(accounts.gangs) - pending
    waits = f"{runs} gang{'' if runs == 1 else 's'} run{'s' if runs == 1 else ''}, {pending} wait{'s' * (pending == 1)}"
    users = f"{len(said.users)} user{'s' * (len(said.users) != 1)}"
    say(f"{users}{groups}, {gpus}; {waits}{by}")
    if accounts.by_weight:
        say("No user has a guarantee: `owed` is the part by weight, which is no promise.")
    if not len(accounts.gangs) and not accounts.said.held.any():
        say("The files do not say what runs and what waits.")
    else:
        counts = ", ".join(f"{count} {status.value}" for status, count in found.counts.items() if count)
        say(f"Users: {counts}")
    _rows(found, in_full=in_full)
    _past_use(found, in_full=in_full)
    _reasons(found, in_full=in_full)
    _broken(found, in_full=in_full)
    _declared(found)
    if found.verdicts and found.accounts.held.any():
        say("Properties of the GPUs held now. Guarantees count gangs as divisible, starvation counts whole gangs:")
        answers(found.verdicts)
    if found.accounts.held.any() or any(each.gains or each.error for each in found.alternatives):
        _alternatives(found.alternatives, in_full=in_full)
    _stops(found, in_full=in_full)
    _unplaced(found.unplaced, in_full=in_full)


def bound(number: Number) -> str:
    """Return a number of GPUs as text, with at most four digits where it is not whole; "-" for no bound."""
    if number == INFINITY:
        return "-"
    return number_text(number) if number == int(number) else f"{float(number):.4g}"


def _rows(found: Audit, *, in_full: bool) -> None:
    grid = table_of([*texts("user", "group", "stands", "type"), "held", "owed", "cap", "asks", "short", "borrows"])
    accounts, users = found.accounts, len(found.market.users)
    busy = accounts.used.any()
    if not busy and accounts.by_weight and accounts.past_use.size:
        return
    all_listed = in_full or not busy
    told = accounts.listed if all_listed else accounts.used
    nodes = sorted(range(len(told)), key=lambda node: (node >= users, ORDER[found.standing[node]]))
    rows = statuses(accounts, nodes)  # of thousands few are shown, and made
    lines = ((row, own) for row in rows for own in row.types if all_listed or own.holds or own.asks)
    last: NodeStatus | None = None
    for row, own in lines if in_full else islice(lines, ROWS):
        name = f"({row.name})" if row.is_group else row.name
        first = (name, row.group) if row is not last else ("", "")
        numbers = [bound(each) for each in (own.holds, own.owed, own.cap)]
        rest = [bound(each) if each else "" for each in (own.asks, own.short, own.borrows)]
        grid.add_row(*first, Text(own.status.value, style=STYLES.get(own.status, "")), own.type, *numbers, *rest)
        last = row
    say(grid)
    if (more := int(told.sum()) - ROWS) > 0 and not in_full:
        say(f"{more} more lines: --verbose shows all")
    if told[users:].any():
        say("(NAME) is a group: it holds and asks for the sum of what its members do.")


def _past_use(found: Audit, *, in_full: bool) -> None:
    accounts = found.accounts
    if not accounts.past_use.size:
        return
    rows = zip(found.rows, accounts.parts, accounts.past_use, strict=False)
    uses = sorted(rows, key=lambda each: each[2] - each[1])
    grid = table_of([*texts("past use", "in"), "part owed", "part used", *texts("")])
    for row, owed, used in uses if in_full else uses[:ROWS]:
        name = f"({row.name})" if row.is_group else row.name
        words = "less than owed" if used < owed else "more than owed" if used > owed else ""
        grid.add_row(name, row.group, f"{float(owed):.2%}", f"{float(used):.2%}", words)
    say(grid)
    if len(uses) > ROWS and not in_full:
        say(f"{len(uses) - ROWS} more lines: --verbose shows all")


def _reasons(found: Audit, *, in_full: bool) -> None:
    stands = dict(zip(found.market.users, found.standing, strict=False))
    ordered = sorted(found.accounts.first_waiting, key=lambda name: stands[name] is not EntitlementStatus.STARVED)
    reasons = {name: found.reason(name) for name in (ordered if in_full else ordered[:REASONS])}
    if reasons:
        say("Why they wait:")
    for name, reason in reasons.items():
        say(f"  {name}: {reason}")
    if len(ordered) > len(reasons):
        say(f"  and {len(ordered) - len(reasons)} more: --verbose shows all, `fairopt explain FILE USER` one")
    _rules(found, reasons.values())


def _rules(found: Audit, reasons: Iterable[Statement]) -> None:
    """Print which of the scheduler's rules make these reasons so."""
    if rules := found.rules_behind(reasons):
        say(f"Rules of {found.source} that make it so:")
    for rule in rules.values():
        say(f"  {rule}")


def _broken(found: Audit, *, in_full: bool) -> None:
    for heading, rows in (("Broken guarantees:", found.guarantees), ("Broken caps:", found.caps)):
        if rows:
            say(Text(heading, style="red"))
        for each in rows if in_full else rows[:REASONS]:
            say(f"  {each}")
        if len(rows) > REASONS and not in_full:
            say(f"  and {len(rows) - REASONS} more: --verbose shows all")
    # each mend takes its time, so that one more than is shown is looked for at most
    remedies = chain((cap.mend for cap in found.caps if cap.mend is not None), found.find_mends())
    shown = list(remedies if in_full else islice(remedies, REASONS))
    for each in shown:
        say(f"  Smallest remedy: {each}")
    if next(remedies, None) is not None:
        say("  and more: --verbose shows all")
    if found.unlooked and shown:
        say(f"  {found.unlooked}")
    if not found.violated and not found.accounts.by_weight:
        say("No guarantee is broken by others' borrowing, and no cap is broken.")


def _declared(found: Audit) -> None:
    known = [each for each in found.declared if each.computed is not None]
    wrong = [each for each in known if each.differs]
    if known:
        differ = "none differs" if not wrong else "1 differs:" if len(wrong) == 1 else f"{len(wrong)} differ:"
        say(f"{len(known)} values that the file states were computed again; {differ}")
    for each in wrong:
        say(f"  {each}")


def _alternatives(rows: Sequence[Alternative], *, in_full: bool) -> None:
    if rows:
        say("What policies would give instead, compared with the GPUs held:")
    for each in rows:
        if each.error:
            say(f"  {each.policy}: {each.error}")
            continue
        if not each.gains:
            say(f"  {each.policy} gives the same")
        if each.rounded:
            say(f"  {each.policy} gives parts of GPUs; here they are whole GPUs and gangs")
        users = sorted(each.gains, key=each.total)
        for heading, names in (
            ("less to", [user for user in users if each.total(user) < 0]),
            ("more to", [user for user in reversed(users) if each.total(user) > 0]),
            ("other types to", [user for user in users if each.total(user) == 0]),
        ):
            if names:
                shown = names if in_full else names[:ROWS]
                said = "; ".join(f"{user} {gained(each, user)}" for user in shown)
                more = f"; and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
                say(f"  {each.policy} gives {heading}: {said}{more}")
        for words in each.overbooked:
            say(f"  {each.policy}: {words}")
        if each.gains and each.verdicts:
            said = ", ".join(f"{name} {MARKS[own.answer]}" for name, own in each.verdicts.items())
            say(f"  with what {each.policy} gives: {said}")


def _stops(found: Audit, *, in_full: bool) -> None:
    """Print whom the scheduler's own rules would stop."""
    for rule, own in found.stops.items():
        say(f"{rule} would stop:")
        for gang, why in own.items() if in_full else islice(own.items(), REASONS):
            say(f"  {gang}: {why}")
        if len(own) > REASONS and not in_full:
            say(f"  and {len(own) - REASONS} more: --verbose shows all")


def gained(found: Alternative, user: str) -> str:
    """Return what a user gains, by type: "+4 H100, -2 A100"."""
    return ", ".join(f"{'+' * (gpus > 0)}{bound(gpus)} {kind}" for kind, gpus in found.gains[user].items())


def _unplaced(rows: Sequence[Statement], *, in_full: bool) -> None:
    if not rows:
        return
    say(f"The model has no place for {counted(len(rows), 'entry')} of the file:")
    for each in rows if in_full else rows[:UNPLACED]:
        say(f"  {each}" if in_full else shorten(f"  {each}", SHORT, placeholder=" ..."))
    if len(rows) > UNPLACED and not in_full:
        say(f"  and {len(rows) - UNPLACED} more: --verbose shows all")


def series(found: AuditSeries, *, in_full: bool) -> None:
    """Print audits of several moments: who starved for how long, who borrowed how much, what changed when."""
    first, last = (each.at.isoformat(sep=" ", timespec="minutes") for each in (found.moments[0], found.moments[-1]))
    say(f"{counted(len(found.moments), 'moment')}, {first} to {last}. What one shows is taken to hold until the next.")
    grid = table_of(["user", *texts("type"), "starved", "longest", *texts("at the end"), *HOURS])
    rows = sorted(found.names, key=lambda name: -sum(found.starved_seconds(name)))
    shown = rows if in_full else rows[:ROWS]
    groups = {name for each in found.moments for name, row in each.rows.items() if row.is_group}
    for name in shown:
        lengths = found.starved_seconds(name)
        starved = [f"{float(each) / 3600:.4g} h" if each else "" for each in (sum(lengths), max(lengths, default=0))]
        now = found.moments[-1].rows.get(name)
        sums = {key: found.gpu_seconds(name, key) for key in HOURS.values()}
        own = [kind for kind in found.types if any(kind in each for each in sums.values())] or [""]
        for number, kind in enumerate(own):
            hours = [four_digits(each[kind] / 3600) if kind in each else "" for each in sums.values()]
            who = [f"({name})" if name in groups else name, kind, *starved, "gone" if now is None else now.status.value]
            grid.add_row(*(who if number == 0 else ["", kind, "", "", ""]), *hours)
    say(grid)
    say("Held, owed, borrowed and short are GPU hours. (NAME) is a group.")
    if len(rows) > len(shown):
        say(f"{len(rows) - len(shown)} more: --verbose shows all")
    for at, words, begins in found.broken if in_full else found.broken[:ROWS]:
        say(f"{at.isoformat(sep=' ', timespec='minutes')}: {'' if begins else 'no more: '}{words}")
    for at, name, *both in found.changes if in_full else found.changes[:ROWS]:
        words = " to ".join("not asked" if each is None else MARKS[each] for each in both)
        say(f"{at.isoformat(sep=' ', timespec='minutes')}: {name}: {words}")


def explanation(found: Explanation) -> None:
    """Print how one user or group stands, and what would change it."""
    row = found.row
    inside = f", in {' in '.join(found.path)}" if found.path else ""
    kind = "group" if row.is_group else "user"
    say(f"{row.name}: a {kind}{inside}; {row.status.value}; weight {number_text(row.weight)}, priority {row.tier}")
    rules = [each for each in found.alternatives if not each.error]
    grid = table_of(["type", "held", "owed", "cap", "asks", "short", "borrows", *(each.policy for each in rules)])
    shares = [found.now(each) for each in rules]
    for own in row.types:
        numbers = [bound(each) for each in (own.holds, own.owed, own.cap)]
        gives = [bound(each.get(own.type, 0)) for each in shares]
        grid.add_row(own.type, *numbers, *(bound(each) for each in (own.asks, own.short, own.borrows)), *gives)
    say(grid)
    if rules:
        say("The last columns are what policies would give it now.")
    say("Why its gangs wait:" if found.waits else "No gang of GPUs waits.")
    for waits in found.waits[:REASONS]:
        more = f" (and {waits.gangs - 1} more like it)" if waits.gangs > 1 else ""
        say(f"  {waits}{more}")
    if len(found.waits) > REASONS:
        say(f"  and for {len(found.waits) - REASONS} other reasons: --json has all")
    _rules(found.found, found.waits[:REASONS])
    for mend in found.mends:
        say(f"Smallest remedy: {mend}")
    if found.loans and not any(mend.gangs for mend in found.mends):
        say("What would let it run:")
        for loan in found.loans:
            say(f"  {loan}")
    if found.found.unlooked and (found.mends or found.loans):
        say(found.found.unlooked)
    for each in found.alternatives:
        for gang, words in islice(found.why(each).items(), REASONS):
            say(f"{each.policy}, {gang}: {words}")
        if each.error:
            say(f"{each.policy}: {each.error}")
    _sensitivities(found)


def _sensitivities(found: Explanation) -> None:
    if not found.sensitivities:
        return
    useful = [each for each in found.sensitivities if each.gains or each.others]
    say("What an increase would give it, each decided again:")
    for policy in dict.fromkeys(each.policy for each in found.sensitivities):
        for each in useful:
            if each.policy == policy:
                say(f"  {policy}, {each}")
        nothing = [str(each.change) for each in found.sensitivities if each.policy == policy and each not in useful]
        if nothing:
            say(f"  {policy}, no difference: {', '.join(nothing)}")


def what_if(found: WhatIf) -> None:
    """Print the difference of two audits."""
    for each in found.settings:
        say(f"Changed: {each}")
    if found.implied:
        say(f"and with it the groups: {', '.join(found.implied)}")
    if not found.status_changes:
        say("No status changes.")
    else:
        changes = ((row.name, row.type, row.before.value, row.after.value) for row in found.status_changes[:ROWS])
        say(table_of(texts("user", "type", "before", "after"), changes))
        if len(found.status_changes) > ROWS:
            say(f"{len(found.status_changes) - ROWS} more lines: --json has all")
    for words in found.overbooked:
        say(words)
    for heading, rows in (("No more broken:", found.mended), ("Newly broken:", found.broken)):
        if rows:
            say(heading)
        for words in rows:
            say(f"  {words}")
    _verdicts(found)
    for name, (was, now) in islice(found.reasons.items(), REASONS):
        say(f"{name}, before: {was or 'does not wait'}")
        say(f"{name}, after:  {now or 'does not wait'}")
    for name, (was, now) in islice(found.stops.items(), REASONS):
        say(f"{name}, before: {f'stopped: {was}' if was else 'is not stopped'}")
        say(f"{name}, after:  {f'stopped: {now}' if now else 'is not stopped'}")
    if found.given:
        say("What policies give:")
        grid = table_of(["user", "policy", *texts("type"), "before", "after", "difference"])
        for given in found.given[:ROWS]:
            numbers = (given.before, given.after, given.after - given.before)
            grid.add_row(given.name, given.policy, given.type, *map(bound, numbers))
        say(grid)
    elif any(not old.error for old, _ in found.decisions) and not found.undecided:
        say("No policy gives anything different.")
    for policy, (was, now) in found.undecided.items():
        say(f"{policy}, before: {was or 'decides'}")
        say(f"{policy}, after:  {now or 'decides'}")


def _verdicts(found: WhatIf) -> None:
    """Print the verdicts that change, and what shows those that do not hold after it."""
    if not found.verdicts:
        if found.after.verdicts and found.after.accounts.held.any():
            say("No verdict on the GPUs held changes.")
        return
    say("Changed verdicts on the GPUs held; gangs count as divisible:")
    rows = (
        (name, *_answer(was), *_answer(now), "" if now is None else now.shown_by)
        for name, (was, now) in found.verdicts.items()
    )
    say(table_of(texts("property", "before", "margin", "after", "margin", "what shows it"), rows))


def _answer(verdict: Verdict | None) -> tuple[str, str]:
    """Return the answer and the margin of a verdict, in words; the case that is tightest, and its unit, may change."""
    if verdict is None:
        return "not asked", ""
    return MARKS[verdict.answer], "" if verdict.margin is None else f"{number_text(verdict.margin)} {verdict.unit}"
