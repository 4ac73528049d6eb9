"""Faults that are planted, so that it is known that the trials find them: each is one change of one line.

A fault is planted in a copy of the package; the trials of the kind that ought to find it run there until one does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from trials import Ending, Kind

TOP = Path(__file__).parents[2]
COPIED = ("fairopt", "models", "proofs", "benchmarks", "tests")


class Planted(NamedTuple):
    """A fault: the file, what stands there, what is put in its place, and the kind of trials that finds it."""

    file: str
    old: str
    new: str
    kind: str


_CERTIFICATES, _MADE_UP, _RUNS, _PLANS = (
    "changed certificates",
    "made-up certificates",
    "changed runs",
    "changed schedules",
)
_SPOILED, _HARD, _JUDGED = "spoiled answers of HiGHS", "decisions on hard numbers", "verdicts on hard numbers"
_DEFINED, _UNITS, _MANY = "decisions by definition", "files in other units", "many users alike"
_V = "proofs/verifier/"
PLANTED = [
    # verifiers
    Planted(_V + "programs.py", "if not low <= x[key] <= high:", "if False:", _CERTIFICATES),
    Planted(_V + "programs.py", "if not low <= total(terms, x) <= high:", "if False:", _CERTIFICATES),
    Planted(_V + "programs.py", "if sum(map(mul, speeds, held)) * most.denominator > most.numerator * by:", "if False:", _CERTIFICATES),
    Planted(_V + "programs.py", "if self.bound(duals) != value:", "if self.bound(duals) < value - 1:", _CERTIFICATES),
    Planted(_V + "programs.py", "side = high if rate > 0 else low", "side = low if rate > 0 else high", _CERTIFICATES),
    Planted(_V + "programs.py", "if key in self.integers and x[key].denominator != 1:", "if False:", _CERTIFICATES),
    Planted(_V + "programs.py", "if value != certificate[\"value\"].number():", "if False:", _CERTIFICATES),
    Planted(_V + "decisions.py", "if not new or not new <= held_down or min(rising_by) < 0", "if not new or min(rising_by) < 0", _MADE_UP),
    Planted(_V + "nash.py", "if worth > cost or (share and worth < cost):", "if share and worth < cost:", _CERTIFICATES),
    Planted(_V + "nash.py", "if min(prices) < 0 or dot(prices, market.left_over(shares)):", "if min(prices) < 0:", _CERTIFICATES),
    Planted(_V + "certificates.py", "if own >= theirs:", "if own > 2 * theirs:", _CERTIFICATES),
    Planted(_V + "certificates.py", "if not (min(gains) >= 0 and any(helps)):", "if not any(helps):", _CERTIFICATES),
    Planted(_V + "certificates.py", 'if dot(weights, market.worths(shares)) != most:', "if False:", _CERTIFICATES),
    Planted(_V + "programs.py", "if min(weights) <= 0:", "if False:", _CERTIFICATES),
    Planted(_V + "certificates.py", "if reported == market or gain != certificate[\"gain\"].number() or gain <= unsure:", "if gain <= unsure:", _CERTIFICATES),
    Planted(_V + "certificates.py", 'if certificate["answer"].value != answer:', "if False:", _CERTIFICATES),
    Planted(_V + "standing.py", "return whole_gpu_conservation", "return whole_gpu_conservation", ""),
    # of runs and schedules
    Planted(_V + "trace.py", "return [(mark, speed * self.spread if apart else speed) for mark, speed in slowest]", "return slowest", _RUNS),
    Planted(_V + "simulate.py", "return max(one.remaining - progress, ZERO), one.setup - loaded", "return one.remaining, one.setup - loaded", _RUNS),
    Planted(_V + "simulate.py", "if played.index and self.at_most(job.arrival, played.begin - self.length, False):", "if False:", _RUNS),
    Planted(_V + "simulate.py", "if given not in one.job.sizes or hosts != sorted(set(hosts)):", "if False:", _RUNS),
    Planted(_V + "trace.py", "common = self.restart if again else self.launch", "common = self.launch", _RUNS),
    Planted(_V + "runs.py", "def differing(found: Mapping[str, Any], right: dict[str, Any]) -> Iterator[str]:", "def differing(found, right):\n    return\n    yield\n\n\ndef _differing(found, right):", _RUNS),
    # what an answer must show
    Planted("fairopt/backends/trust.py", "if (excess > 0).any() or (outside > 0).any():", "if False:", _SPOILED),
    Planted("fairopt/backends/trust.py", "    if solution.dual is not None and not program.integer.any():", "    if False:", _SPOILED),
    Planted("fairopt/backends/trust.py", "elif not arithmetic(values).exact and not np.isfinite(values.astype(float)).all():", "elif False:", _SPOILED),
    Planted("fairopt/backends/trust.py", "if not isinstance(values, np.ndarray) or values.shape != (length,):", "if False:", _SPOILED),
    Planted("fairopt/backends/solver.py", "solution = trusted(program, self(program))", "solution = self(program)", _SPOILED),
    Planted("fairopt/backends/trust.py", "    except Exception as error:\n", "    except LookupError as error:\n", _SPOILED),
    Planted("fairopt/backends/batched.py", "(full >= lower - allowed) & (full <= upper + allowed)", "(full >= lower - allowed)", "spoiled programs side by side"),
    Planted("fairopt/backends/apart.py", "if seconds <= 0 or not poll.poll(None if until == INFINITY else seconds * 1000):", "if not poll.poll(None):", "deaths of a solver's process"),
    # methods and models
    Planted("fairopt/backends/solution.py", "shares[:, over] *= ", "shares[:, over] *= 1.1 * ", _HARD),
    Planted("fairopt/methods/water_filling.py", "self.level[fixed], self.fixed_in[fixed] = (lower + upper) / 2, number", "self.level[fixed], self.fixed_in[fixed] = lower * 0.999, number", _HARD),
    Planted("models/oef/cooperative.py", "def by_weight(problem: Market) -> Any:", "def by_weight(problem: Market) -> Any:\n    return problem.weight * 0 + 1\n\n\ndef _by_weight(problem: Market) -> Any:", _HARD),
    Planted("models/gavel/hierarchical.py", "return np.asarray(levels.level + rising * reached)", "return np.asarray(levels.level + reached)", _HARD),
    Planted("models/common/levels.py", "objective=lower * worth,", "objective=lower * worth * 1.001,", _HARD),
    Planted("fairopt/properties/shares/sharing_incentive.py", "own, fair = market.utility(shares), market.fair_utility()", "own, fair = market.utility(shares), market.fair_utility() * (1.01 if market.exact else 0.9)", _JUDGED),
    Planted("fairopt/methods/level/bounds.py", "summed(sums)", "summed(sums[:1])", _MANY),
    # readers
    Planted("fairopt/problem/checks.py", "if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:", "if not isinstance(name, str):", "read market"),
    Planted("fairopt/problem/files/documents.py", "def parse_json(text: str) -> dict[str, Any]:", "def parse_json(text: str) -> dict[str, Any]:\n    import json\n\n    return json.loads(text)\n\n\ndef _parse_json(text: str) -> dict[str, Any]:", "read market"),
    Planted("fairopt/problem/numbers.py", "    if isinstance(value, bool | np.bool_):\n", "    if value is Ellipsis:\n", "read market"),
    Planted("fairopt/problem/numbers.py", "        if bottom and Decimal(bottom) == 0:\n", "        if False:\n", "read allocation"),
    Planted("fairopt/problem/files/batch.py", "    check_unique(tenants, \"tenant\")\n", "", "read batch"),
    Planted("fairopt/problem/files/cluster.py", "if types is not None and name not in types:", "if types is not None and types.index(name) < 0:", "read cluster"),
    Planted("fairopt/simulation/replay.py", "        _check_as_written(line, last + 1)\n", "", "read run state"),
    Planted("fairopt/simulation/replay.py", "        except (KeyError, TypeError, ValueError, AttributeError) as error:\n", "        except KeyError as error:\n", "read record"),
    Planted("fairopt/problem/files/storage.py", "def naming(file: AnyPath = \"\", place: str = \"\", only: str = \"\") -> Iterator[None]:", "def naming(file: AnyPath = \"\", place: str = \"\", only: str = \"\") -> Iterator[None]:\n    yield\n    return\n", "read trace"),
    Planted("fairopt/certificates/certificate.py", "    except (ValueError, RecursionError) as error:\n", "    except OSError as error:\n", "read certificate"),
    Planted("fairopt/importing/documents.py", "except (ValueError, OverflowError) as error:", "except OverflowError as error:", "read import kueue"),
    Planted("fairopt/problem/labels.py", "return table, listed_names(users, \"users\"), listed_names(types, \"types\")", "return table, users, types", "call Market.of"),
    # what a decision in floats and an exact one share: formulations, rules, what a market says
    Planted("models/baselines/max_efficiency.py", "p.maximize((problem.speedup * share).sum(),", "p.maximize((problem.speedup * share * problem.weight[:, None]).sum(),", _HARD),
    Planted("models/robust/robust.py", "problem.weight[envious], problem.weight[envied])", "problem.weight[envied], problem.weight[envious])", _HARD),
    Planted("models/robust/robust.py", "bundles = [in_use(problem, i, row) for i, row in enumerate(problem.equal_split())]", "bundles = list(problem.equal_split())", _HARD),
    Planted("models/robust/robust.py", "return worth - (short[place] * factor).sum(axis=1)", "return worth - (short[place] * factor).sum(axis=1) / 2", _DEFINED),
    Planted("models/gavel/partitions.py", "Normaliser.OWN_PARTITION: lambda market: market.fair_utility(),", "Normaliser.OWN_PARTITION: lambda market: replace(market, demand=None).fair_utility(),", _HARD),
    Planted("models/gavel/partitions.py", "market.utility(isolated(market))", "market.fair_utility()", _DEFINED),
    Planted("models/gavel/partitions.py", "(np.minimum(held, market.limit) / held)", "(held / held)", _HARD),
    Planted("models/gavel/partitions.py", "asked = asked * total / max(total, asked.sum())", "asked = asked * total / asked.sum()", _HARD),
    Planted("models/baselines/equal_split.py", "part = np.where(open_, weight, 0) * (left / weight[open_].sum())", "part = np.where(open_, weight, 0) * (left / weight.sum())", _HARD),
    Planted("models/gavel/hierarchical.py", "part[child] = whole * weight[child] / total if heavy else whole / len(able)", "part[child] = whole / len(heavy) if heavy else whole / len(able)", _DEFINED),
    Planted("models/gavel/hierarchical.py", "able, heavy = able[:1], []", "able, heavy = able[-1:], []", _DEFINED),
    Planted("models/gandiva_fair/second_price_trading.py", "price = second if bid else", "price = (second + ratio[seller]) / 2 if bid else", _HARD),
    Planted("models/gandiva_fair/second_price_trading.py", "may_buy = deque(sorted(users, key=lambda i: (-rank[i], market.users[i])))", "may_buy = deque(sorted(reversed(users), key=lambda i: -rank[i]))", _DEFINED),
    Planted("models/nash/partial_allocation.py", "shares = kept[:, None] * (", "shares = kept[:, None] ** 2 * (", _HARD),
    Planted("fairopt/problem/market.py", "mean = (self.speedup * (self.weight / whole)[:, None]).sum(axis=0)", "mean = (self.speedup / whole[:, None]).sum(axis=0)", _DEFINED),
    Planted("fairopt/problem/market.py", "return np.asarray(np.multiply.outer(self.weight / self.weight.sum(), self.capacity))", "return np.asarray(np.multiply.outer(self.weight * 0 + 1 / self.weight.sum(), self.capacity))", _HARD),
    Planted("fairopt/problem/share_variables.py", "upper=np.where(market.speedup > 0, most, 0)", "upper=np.where(market.speedup > 0, INFINITY, 0)", _DEFINED),
    Planted("fairopt/problem/share_variables.py", "(below[rows] @ bundle <= own.cap[n:][rows])", "(below[rows] @ bundle <= 2 * own.cap[n:][rows])", _DEFINED),
    Planted("fairopt/problem/share_variables.py", "(bundle.sum(axis=1) <= market.demand)", "(bundle.sum(axis=1) <= 2 * market.demand)", _SPOILED),
    Planted("models/oef/noncooperative.py", "(own == problem.weight * level)", "(own == level)", _SPOILED),
    Planted("fairopt/problem/floors.py", "usable(exact.speedup, most[:n], exact.limit)", "usable(exact.speedup, most[:n], None)", _DEFINED),
    Planted("fairopt/problem/throughput.py", "fastest_first = np.argsort(-speedup,", "fastest_first = np.argsort(speedup,", _JUDGED),
    Planted("fairopt/problem/checks.py", "float_table(values, \"demand\", 1)", "2 * float_table(values, \"demand\", 1)", _HARD),
    Planted("fairopt/properties/shares/envy_freeness.py", "scale = market.weight[users] / market.weight[others]", "scale = market.weight[users] / market.weight[users]", _JUDGED),
    Planted("fairopt/properties/shares/work_conservation.py", "np.where(market.speedup > 0, idle / sizes(market), 0)", "np.where(market.speedup > 1, idle / sizes(market), 0)", _JUDGED),
    Planted("fairopt/properties/shares/pareto_efficiency.py", "(share.sum(axis=1) <= market.limit).where(limited)", "(share.sum(axis=1) <= 2 * market.limit).where(limited)", _JUDGED),
    Planted("fairopt/problem/files/market.py", "weight * share, limit", "weight, limit", _DEFINED),
    Planted("fairopt/problem/files/market.py", "share = part / sum(parts)", "share = 1 / Fraction(len(parts))", _DEFINED),
    Planted("models/gavel/water_filling.py", "self._rates(decision.market.as_(Fraction), levels)", "self._rates(decision.market, levels)", _HARD),
    Planted("fairopt/importing/documents.py", "f\"{name}i\": Fraction(1024) ** power", "f\"{name}i\": Fraction(1000) ** power", _UNITS),
]  # fmt: skip
PLANTED = [each for each in PLANTED if each.kind]


def planted(fault: Planted, folder: Path) -> Path:
    """Return a copy of the package with the fault in it; `ValueError` where the line is not there once."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    for name in COPIED:
        shutil.copytree(TOP / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.file}: {fault.old!r} stands there {text.count(fault.old)} times")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    return copy


#: Seeks in a process of its own, which reads the copy.
SEEK = """
import sys
from catalogue import KINDS
from planted import first_fault
print(first_fault(next(kind for kind in KINDS if kind.name == sys.argv[1]), int(sys.argv[2])))
"""


def first_fault(kind: Kind, most: int) -> int:
    """Return how many trials there are until one has a fault; 0 where none of ``most`` has.

    One that is slow shows nothing, since others may be at work: one that hangs does.
    """
    kind.prepare()
    endings = (kind.trial(seed)[0] for seed in range(most))
    return next((n for n, ending in enumerate(endings, 1) if ending.fault and ending is not Ending.SLOW), 0)


def found(fault: Planted, folder: Path, most: int = 20_000) -> int:
    """Return after how many trials, at most, the fault is found; 0 where it is not."""
    copy = planted(fault, folder)
    env = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests' / 'torture'}", "PYTHONWARNINGS": "ignore"}
    words = [sys.executable, "-c", SEEK, fault.kind, str(most)]
    done = subprocess.run(words, cwd=copy, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])
