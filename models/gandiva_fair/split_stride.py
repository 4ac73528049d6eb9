"""Split stride: each server schedules its small jobs, a central scheduler the large ones and the servers' turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairopt.backends import Session
from fairopt.models.gandiva_fair.pools import Assign, least_crowded
from fairopt.models.gandiva_fair.servers import ServerLoads
from fairopt.models.gandiva_fair.split_quantum import Split, quantum
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.queue import Queue
from fairopt.program import Number


@dataclass(frozen=True)
class SplitStride(Policy):
    """Each round is a quantum of `split_quantum.quantum`; jobs stay on the servers that they came to.

    A new job goes to the servers with the least load per GPU (Algorithm 2): a small job to one, a large one to as many
    as it needs. A job is large if no working server of its type has enough GPUs. It runs or pauses on its servers, so
    that jobs only migrate from servers that fail.

    Choices where the paper leaves something open:

    * A job's tickets are effective and follow Eq. (3), as for `GangAwareStride`; its stride is its GPUs over them.
    * The stride of a server's aggregate job is GPUs over the tickets of its small jobs. With ``whole`` the GPUs are
      those of the server, as in the paper's drawing. Without, they are those that the small jobs got in the quantum, as
      under one stride for the whole cluster. The two agree where small jobs fill their server.
    * A large job has the same servers as long as they work. Large and small jobs share servers: each may use the GPUs
      that the others leave free. ``shared`` False gives a server to one or the other.
    * With several types each has a central scheduler; ``assign`` chooses a new job's type.

    Source: Gandiva_fair Sec. 3.1 (Large jobs), Fig. 3; Algorithm 2.
    """

    problem = Queue
    name = "split-stride"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.1"
    traits = frozenset({Trait.ONE_TYPE, Trait.NAMELESS})
    claims = (
        Claim("", "Sec. 3.1", "equal tickets on all servers", words="shares as under one stride for the cluster"),
    )
    states = (Split,)
    whole: bool = False
    shared: bool = True
    assign: Assign = least_crowded

    def decide(self, problem: Queue, state: Split, solve: Session) -> Schedule:
        """Allocate new jobs, and run one quantum; see `Policy.decide`."""
        servers = ServerLoads(problem, fair_tickets(problem), state.homes)
        wanted = problem.capacity * 0
        for row in servers.home:
            wanted[servers.gpu_type(row)] += problem.jobs.gpus[row]
        for row in servers.next_jobs():
            gpu_type = self.assign(problem, row, problem.open_to(row), wanted)
            wanted[gpu_type] += problem.jobs.gpus[row]
            servers.allocate(row, gpu_type)
        running, after = quantum(servers, state, whole=self.whole, shared=self.shared)
        return Schedule(self.name, problem, dict(problem.leased) | running, state=after)


def fair_tickets(queue: Queue) -> list[Mapping[str, Number]]:
    """Return the GPUs of each type that each user present is entitled to: in proportion to its tickets.

    Jobs that fit no type do not count.

    Source: Gandiva_fair Sec. 1 (a proportional share of each generation), 2.1.
    """
    jobs = queue.jobs
    present = sorted({int(jobs.tenant[row]) for row in queue.fitting})
    weight = {jobs.tenants[user]: queue.number(jobs.tenant_weight[user]) for user in present}
    whole = sum(weight.values())
    return [{user: own * int(gpus) / whole for user, own in weight.items()} for gpus in queue.capacity]
