"""Traces that policies of rounds play: files, and the data sets that are bundled."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Any

from fairopt.benchmarks.instances.markets import whole
from fairopt.errors import BadInput
from fairopt.experiment.bench import Family, Instance
from fairopt.experiment.studies.traces import Place, Source, drawn
from fairopt.problem import Trace
from fairopt.problem.checks import check_name
from fairopt.problem.labels import check_keys
from fairopt.simulation import Mechanics, Setting
from fairopt.simulation.document import cluster_to_json, jobs_to_json
from fairopt.workloads import WorkEstimates


class Traces(Family):
    """A trace on a cluster, in floats, in rounds of 300 s, with 30 s for a restart; drawn from nothing.

    Parameters: ``trace`` and ``cluster``, files or data sets (@NAME); ``jobs``, how many of the first are played.
    Tenants weigh the GPUs that their jobs request (ASTRAEA Sec. 6.1), which FIFO with quotas goes by.
    """

    name = "traces"
    source = "the trace's own"

    def draw(self, seed: int, parameters: Mapping[str, Any]) -> Instance:
        """Return the trace; the seed changes nothing."""
        place = f"family {self.name!r}"
        check_keys(parameters, ["trace", "cluster", "jobs"], ["trace", "cluster", "jobs"], place)
        most = whole(1)(parameters["jobs"], f"{place}, parameter 'jobs'")
        file, there = (check_name(parameters[name], f"{place}, parameter {name!r}") for name in ("trace", "cluster"))
        where = Place(there, there)
        cluster = where.made()
        given = drawn(Source(file, file, jobs=most), where, None, WorkEstimates(), 0)
        if len(given.jobs) < most:
            remedy = f"Give at most {len(given.jobs)}"
            raise BadInput(f"{file} has {len(given.jobs)} jobs, not {most}", place=f"{place}, 'jobs'", remedy=remedy)
        jobs = given.jobs.as_(float).weighted_by_request()
        setting = Setting(cluster, Trace(jobs, given.outages).as_(float), Mechanics(restart=Fraction(30)))
        content = sha256(repr(cluster_to_json(cluster)).encode())
        for job in jobs_to_json(jobs, range(most)):
            content.update(repr(job).encode())
        label = f"{self.name} ({file}, jobs {most})"
        return Instance(self.name, label, most, seed, dict(parameters), content.hexdigest(), setting)
