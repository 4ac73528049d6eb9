"""Claims on how KAI Scheduler divides what there is among queues, held against the division as its code has it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from fairopt.models.common.holdings import ratio
from fairopt.models.kai.pool import QueueClaim, divided, share_weights, within_quota
from fairopt.program import Number
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling

READ = "Read at d5bc503a; no live cluster was run."


def documented(total: int, claims: Sequence[QueueClaim], rounds: int) -> list[Number]:
    """Return the shares after so many rounds of the documents' pseudo-code, line by line.

    Source: docs/fairness/README.md, "Fair share calculation".
    """
    shares: list[Number] = [Fraction(amount) for amount in within_quota(total, claims)]
    remaining: Number = total - sum(shares)
    for _ in range(rounds):
        whole = sum(claim.weight for claim in claims)
        for q, claim in enumerate(claims):
            assign = min(remaining * claim.weight / whole, claim.request - shares[q])
            shares[q] += assign
            remaining -= assign
    return shares


def pseudo_code() -> Finding:
    """Two equal queues on 100 GPUs by the documents' loop and by the code."""
    queues = [QueueClaim(0, 100), QueueClaim(0, 100)]
    loop = documented(100, queues, 60)
    swapped = documented(100, queues[::-1], 60)
    code = divided(100, queues)
    near = [f"{float(share):.1f}" for share in loop]
    same = loop == swapped and loop[0] == loop[1]
    beyond = divided(1, [QueueClaim(0, Fraction(3, 5)), QueueClaim(0, Fraction(3, 5))])
    evidence = (
        "'resourcesToAssign = min(remainingResources * q.OverQuotaWeight / totalWeights, q.RemainingRequest)', then "
        "'remainingResources -= resourcesToAssign', inside the loop over queues. Two equal queues that ask for 100 of "
        f"100 GPUs get {near[0]} and {near[1]} by it, the first in the list the more (after 60 rounds; it never ends, "
        f"since less and less remains). The code divides what there was when a round began: {code[0]} and {code[1]}, "
        "whichever comes first. Nor does the pseudo-code have priorities, the rounding to whole units, or the largest "
        "remainders, by which a share can be more than a queue asks for: 1 GPU for two that ask for 3/5 is shared "
        f"{beyond[0]} and {beyond[1]}. {READ}"
    )
    return Finding(Ruling.QUALIFIED if same else Ruling.INCONSISTENT, evidence)


def simulator() -> Finding:
    """The example of the simulator's README: GPUs, CPU and memory."""
    gpus = divided(100, [QueueClaim(10, 100, weight=3), QueueClaim(10, 100, weight=1)])
    unlimited = float("inf")
    cpu = divided(16000, [QueueClaim(unlimited, 100000)] * 2)
    memory = divided(32_000_000, [QueueClaim(unlimited, 100000)] * 2)
    agree = (gpus, cpu, memory) == ([70, 30], [16000, 16000], [100000, 100000])
    evidence = (
        f"100 GPUs, quotas of 10 and 10, weights 3 and 1: {gpus[0]} and {gpus[1]}. CPU and memory, of which the "
        f"example says nothing, have a quota of -1 and a request of 100000 by default: {cpu[0]} and {cpu[1]} of 16000, "
        f"{memory[0]} and {memory[1]} of 32000000, as printed. The CPU shares add up to {sum(cpu) // 16000} times what "
        f"there is. {READ}"
    )
    return Finding(Ruling.REPRODUCED if agree else Ruling.REFUTED, evidence)


def deep_dive() -> Finding:
    """The ten GPUs of the deep dive's first picture."""
    teams = [
        QueueClaim(2, 10, weight=2, tier=2),
        QueueClaim(2, 10, weight=1, tier=2),
        QueueClaim(3, 10, weight=1, tier=1),
    ]
    shares = divided(10, teams)
    evidence = (
        "10 GPUs; Vision (priority 2, quota 2, weight 2), LLM (2, 2, 1), Data (1, 3, 1), all asking for 10: fair "
        f"shares of {shares[0]}, {shares[1]} and {shares[2]}: of the surplus of 3, 2 and 1 go to priority 2 by weight, "
        f"none to priority 1. {READ}"
    )
    return Finding(Ruling.REPRODUCED if shares == [4, 3, 3] else Ruling.REFUTED, evidence)


def buckets() -> Finding:
    """Whether all surplus goes to the highest priority first, on all small instances."""
    worst = divided(1, [QueueClaim(0, 1, tier=2), QueueClaim(0, 1, tier=2), QueueClaim(0, 1, tier=1)])
    broken = total = 0
    for amount, first, second, low in product(range(1, 7), range(1, 5), range(1, 5), range(1, 5)):
        shares = divided(
            amount, [QueueClaim(0, first, tier=2), QueueClaim(0, second, tier=2), QueueClaim(0, low, tier=1)]
        )
        total += 1
        overtaken = shares[2] > 0 and shares[0] + shares[1] < first + second
        broken += overtaken
        require(not overtaken or shares[2] < 2, "less than one unit for each queue of the higher priority")
    evidence = (
        "'Priority is strictly hierarchical \u2014 all surplus goes to the highest priority bucket before any reaches "
        "the next'. 1 GPU, two queues of priority 2 and one of priority 1, each asking for 1 with weight 1: "
        f"{worst[0]}, {worst[1]} and {worst[2]}. The code rounds each half down to none, goes on to priority 1 with "
        "the whole GPU, and looks at remainders only after all priorities (divideOverQuotaResource). Of the "
        f"{total} instances with 1 to 6 GPUs and requests of 1 to 4, priority 1 gets some in {broken} while priority 2 "
        "asks for more. Never more than is lost to rounding: fewer units than the higher priority has queues. The "
        f"source's test of remainders and priorities (line 401) has a low queue that asks for nothing. {READ}"
    )
    return Finding(Ruling.REFUTED if broken else Ruling.HOLDS_BOUNDED, evidence)


def unset_limit() -> Finding:
    """The documents' hierarchical example, whose queue says no limit."""
    share = within_quota(10, [QueueClaim(1, 4, limit=0)])[0]
    free = within_quota(10, [QueueClaim(1, 4)])[0]
    evidence = (
        "'`limit` | `0` or unset | No additional resources allowed (default)'. One reading: nothing beyond the quota; "
        "the other: nothing. By the code it is nothing at all: the limit of an unset field is 0, the share of a queue "
        f"with a quota of 1 GPU is min(1, min(0, 4)) = {share}, where with a limit of -1 it is {free}, and a pod that "
        "asks for any is over the limit (max_allowed_check.go: 0 < 0 + 1). So the document's own example ml-team "
        "(quota 1, no limit) can run no pod with GPUs, and its research-team (no memory section) none that asks for "
        "memory. The definition (scheduling.run.ai_queues.yaml) sets no defaults, and the webhook asks for none. "
        f"{READ}"
    )
    return Finding(Ruling.QUALIFIED if share == 0 else Ruling.REPRODUCED, evidence)


def no_usage() -> Finding:
    """Whether no past usage at all gives the weights alone, and whether the parts add up to 1."""
    same = total = 0
    for weights in product(range(1, 5), repeat=3):
        for k in (Fraction(1, 2), 1, 5):
            queues = [QueueClaim(0, 9, weight=weight) for weight in weights]
            whole = sum(weights)
            ours = [w / Fraction(whole) * (1 + k) for w in weights]  # w + k (w - 0)
            parts = [each / sum(ours) for each in ours]
            found = share_weights([claim._replace(usage=Fraction(0)) for claim in queues], k)
            plain = [ratio(part, sum(found)) for part in found]
            total += 1
            same += parts == plain
    half = divided(16, [QueueClaim(0, 16, usage=Fraction(3, 4)), QueueClaim(0, 16)], k=1)
    evidence = (
        "'0 historical usage across the board will effectively revert to the current formula'. P = w (1 + k) for all, "
        f"and the factor cancels; so in all {total} of {total} cases of three weights of 1 to 4 and k of 1/2, 1 and 5. "
        "The parts add up to 1 as long as some part is positive; they are while usages add up to at most 1, since then "
        "their sum is at least 1 + k (1 - 1). With usages of 3/4 and 0 of equal weight and k = 1, 16 GPUs are shared "
        f"{half[0]} and {half[1]}. {READ}"
    )
    return Finding(Ruling.HOLDS_BOUNDED if same == total else Ruling.REFUTED, evidence)


def worked_usage() -> Finding:
    """The numbers of the time-based document."""
    share = Fraction(8 * 3, 10 * 10)
    most = 10 * 2
    evidence = (
        "'in a cluster with 10 GPUs, and considering a time period of 10 hours, a queue which consumed 24 GPU hours "
        "(wether it's 8 GPUs for 3 hours, or 12 GPUs for 2 hours), will get a normalized usage score of 0.24'. 8 GPUs "
        f"for 3 hours of 10 x 10 are {float(share)}. 12 GPUs for 2 hours cannot be had of 10 GPUs, which give {most} "
        f"GPU hours in 2 hours. {READ}"
    )
    return Finding(Ruling.INCONSISTENT if share == Fraction(6, 25) and most < 12 * 2 else Ruling.REPRODUCED, evidence)
