"""What is observed once: lists, texts of help, claims, and wrong inputs with their exit status and message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generate import Problem
from plan import SHARES, Step, Written

#: Commands that need no file.
LISTS: Sequence[str] = (
    "--help",
    "--version",
    "solve --help",
    "verify --help",
    "compare --help",
    "policies --help",
    "backends --help",
    "properties --help",
    "check --help",
    "claims --help",
    "lie --help",
    "run --help",
    "schedule --help",
    "bench --help",
    "policies",
    "policies --json",
    "backends",
    "backends --json",
    "properties",
    "properties --json",
    "claims",
    "claims --json",
    "claims --json --paper oef",
    "claims --json --verdict refuted",
    "claims oef-thm5.3",
    "claims --run --json oef-fig2",
    "bench list",
)
MARKET = """schema = 1
types = ["T1", "T2"]
capacity = [3, 1]
[[user]]
name = "u1"
speedup = [3, 3]
[[user]]
name = "u2"
speedup = [3, 2]
[[user]]
name = "u3"
speedup = [3, 3]
"""
TRACE = """job_id,tenant,submit_s,work,gpus,throughput K80,throughput V100
a,t,0,3000,1,1,3.3
b,u,20,500,2,1,2
c,u,700,90,4,1,0
"""
CLUSTER = """schema = 1
[[host]]
type = "K80"
gpus = 4
[[host]]
type = "V100"
gpus = 2
"""
BATCH = """schema = 1
[bandwidth]
worker = 1
ps = 1
[[tenant]]
name = "t1"
workers = 2
ps = 1
[[server]]
workers = 2
ps = 1
[[job]]
name = "j1"
tenant = "t1"
epochs = 1
chunks = 2
minibatches = 1
minibatch_time = 1
utility = {linear = [-2, 100]}
"""
RIGHT = {
    "market.toml": MARKET,
    "trace.csv": TRACE,
    "cluster.toml": CLUSTER,
    "batch.toml": BATCH,
    "allocation.csv": "user,T1,T2\nu1,1,1\nu2,1,0\nu3,1,0\n",
    "plan.json": '{"schedules": []}',
}
#: What is changed in one of the right files: file, what stands there, what is put there instead, the command.
#: The policies that the master was made with; those that came since are not asked.
EVERY = " ".join(f"--policy {name}" for name in SHARES)
MISTAKES: Sequence[tuple[str, str, str, str]] = (
    ("market.toml", "schema = 1", "schema = 2", "solve market.toml --policy max-min"),
    ("market.toml", "schema = 1\n", "", "solve market.toml --policy max-min"),
    ("market.toml", "[3, 1]", "[3, -1]", "solve market.toml --policy max-min"),
    ("market.toml", "[3, 1]", "[3]", "compare market.toml --json"),
    ("market.toml", "[3, 2]", "[3, nan]", "compare market.toml"),
    ("market.toml", "[3, 2]", "[0, 0]", "solve market.toml --policy oef-cooperative --exact --json"),
    ("market.toml", "[3, 2]", '[3, "two"]', "solve market.toml --policy max-min"),
    ("market.toml", "[3, 2]", '[3, "1/0"]', "solve market.toml --policy max-min"),
    ("market.toml", "[3, 2]", "[3, 1e400]", "solve market.toml --policy max-min"),
    ("market.toml", 'name = "u2"', 'name = "u1"', "solve market.toml --policy max-min"),
    ("market.toml", "speedup = [3, 2]", "speedups = [3, 2]", "solve market.toml --policy max-min"),
    ("market.toml", "[[user]]", "[[user", "solve market.toml --policy max-min"),
    ("market.toml", "", "", "solve market.toml --policy max-mim"),
    ("market.toml", "", "", "solve market.toml --policy fft"),
    ("market.toml", "", "", "solve market.toml --policy max-min --backend gurobi"),
    ("market.toml", "", "", "solve market.toml --policy max-min --backend highs --exact"),
    ("market.toml", "", "", "solve market.toml --policy equal-split --backend highs"),
    ("market.toml", "", "", "solve market.toml --policy nash-welfare --backend ecos --json"),
    ("market.toml", "", "", "solve market.toml --policy second-price-trading --time-limit 1"),
    ("market.toml", "", "", "solve market.toml"),
    ("market.toml", "", "", "solve market.toml --policy max-min --certificate nowhere/proof.json"),
    ("market.toml", "", "", "solve markets.toml --policy max-min"),
    ("market.toml", "", "", "solve market.yaml --policy max-min"),
    ("market.toml", "", "", "compare market.toml --property envyfreeness"),
    ("market.toml", "", "", "compare market.toml --policy max-min --policy nonsense"),
    ("market.toml", "", "", "compare market.toml --certificates ."),
    ("market.toml", "", "", "lie market.toml --policy max-min --kind wrong"),
    ("market.toml", "", "", "nonsense"),
    ("market.toml", "", "", ""),
    ("allocation.csv", "u3,1,0", "u4,1,0", "verify market.toml allocation.csv"),
    ("allocation.csv", "u3,1,0\n", "", "verify market.toml allocation.csv --json"),
    ("allocation.csv", "u3,1,0", "u3,x,0", "verify market.toml allocation.csv"),
    ("allocation.csv", "u3,1,0", "u3,-1,0", "verify market.toml allocation.csv --json"),
    ("allocation.csv", "u3,1,0", "u3,9,0", "verify market.toml allocation.csv"),
    ("allocation.csv", "T1,T2", "T1,T3", "verify market.toml allocation.csv"),
    ("allocation.csv", "", "", "verify market.toml allocation.csv --property strategy_proofness"),
    ("allocation.csv", "", "", "verify market.toml allocation.csv --property pareto_efficiency --exact --json"),
    ("allocation.csv", "", "", "check allocation.csv"),
    ("market.toml", "", "", "check market.toml"),
    ("market.toml", "", "", "check nothing.json"),
    ("market.toml", "", "", "claims no-such-claim"),
    ("market.toml", "", "", "claims --paper nobody"),
    ("market.toml", "", "", "claims --verdict wrong"),
    ("trace.csv", "gpus", "gpu", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("trace.csv", "b,u,20,500,2", "b,u,20,500,0", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("trace.csv", "b,u,20,500,2", "b,u,20,0,2", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("trace.csv", "b,u", "a,u", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("trace.csv", "throughput V100", "throughput A100", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("trace.csv", "c,u,700,90,4,1,0", "c,u,700,90,4,0,0", "run trace.csv --cluster cluster.toml --policy srtf --json"),
    ("trace.csv", "90,4", "90,64", "run trace.csv --cluster cluster.toml --policy srtf --json"),
    ("cluster.toml", "gpus = 2", "gpus = 0", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("cluster.toml", "gpus = 2", "gpus = 2.5", "run trace.csv --cluster cluster.toml --policy srtf"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy srft"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy max-min"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy srtf --length 0"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy srtf --length x"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy srtf --set nothing=1"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy ltgf --set adjusted=perhaps"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy ltgf --set adjusted"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy srtf --backend highs"),
    ("trace.csv", "", "", "run trace.csv --cluster cluster.toml --policy srtf --resume trace.csv"),
    ("trace.csv", "", "", "run trace.csv --policy srtf"),
    ("trace.csv", "", "", "run trace.csv --cluster trace.csv --policy srtf"),
    ("batch.toml", "workers = 2\nps = 1\n[[job]]", "workers = 3\nps = 1\n[[job]]", "schedule batch.toml --policy fcfs"),
    ("batch.toml", "chunks = 2", "chunks = 0", "schedule batch.toml --policy fcfs"),
    ("batch.toml", 'tenant = "t1"', 'tenant = "t2"', "schedule batch.toml --policy fcfs"),
    ("batch.toml", "linear = [-2, 100]", "linear = [-2]", "schedule batch.toml --policy fcfs"),
    ("batch.toml", "linear", "lineal", "schedule batch.toml --policy fcfs"),
    ("batch.toml", "", "", "schedule batch.toml --policy fcsf"),
    ("batch.toml", "", "", "schedule batch.toml --policy fcfs --backend highs"),
    ("batch.toml", "", "", "schedule batch.toml --policy fcfs --set horizon=x"),
    ("batch.toml", "", "", "schedule batch.toml --policy posted-prices --set theta=0"),
    ("batch.toml", "", "", "schedule market.toml --policy fcfs"),
    ("plan.json", "", "", "verify batch.toml plan.json --json"),
    ("plan.json", "[]", "{}", "verify batch.toml plan.json --json"),
    ("plan.json", "schedules", "schedule", "verify batch.toml plan.json --json"),
    ("plan.json", "[]", "[1]", "verify batch.toml plan.json"),
    ("plan.json", "", "", "verify batch.toml plan.json --property feasibility"),
    ("market.toml", "", "", f"compare market.toml --json --floats --evaluations 60 {EVERY}"),
    ("market.toml", "", "", f"compare market.toml --json --evaluations 60 --every-optimum {EVERY}"),
)


def problems(*, quick: bool) -> Iterator[Problem]:
    """Yield the lists as one problem, and the mistakes in groups."""
    yield Problem("f-lists", "fixed", 0, {})
    for group in range(8):
        if not quick or group == 0:
            yield Problem(f"f-mistakes-{group}", "fixed", 1 + group, RIGHT)


def steps(problem: Problem) -> Iterator[Step | Written]:
    """Yield the commands of a group."""
    if problem.number == 0:
        yield from (Step(tuple(line.split())) for line in LISTS)
        return
    for name, right, wrong, line in MISTAKES[problem.number - 1 :: 8]:
        yield Written(name, RIGHT[name].replace(right, wrong, 1) if right else RIGHT[name])
        yield Step(tuple(line.split()))
        yield Written(name, RIGHT[name])
