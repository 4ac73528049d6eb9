"""The trace and the cluster that the tests of `fairopt run` play."""

from __future__ import annotations

from typing import Any

CLUSTER = """
schema = 1
[[host]]
type = "K80"
gpus = 2
count = 2
bandwidth = 1.25
[[host]]
type = "V100"
gpus = 2
"""
JOBS = """job_id,tenant,submit_s,work,gpus,state_size,throughput K80,throughput V100
a,t,0,3000,1,0.5,1,3.3
b,u,20,500,2,0.5,1,2
c,u,700,90,4,0,1,0
d,t,900,4000,1,0.1,1,5
e,t,899.5,100,2,0.1,0,1
big,u,1300,10,8,0,1,1
"""


def without_seconds(data: dict[str, Any]) -> dict[str, Any]:
    for record in data["rounds"]:
        del record["seconds"]
    del data["measures"]["deciding"], data["measures"]["row"]["deciding"]
    return data
