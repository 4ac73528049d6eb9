"""What the configuration of Volcano's scheduler says of its actions, and what its action "preempt" asks of each gang.

Source: volcano-sh/volcano at ed72c7c8, pkg/scheduler/conf/scheduler_conf.go; framework/session_plugins.go, Preemptable;
api/job_info.go, NewTaskInfo; plugins/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fairopt.importing.imported import Places
from fairopt.importing.kubernetes import Pod
from fairopt.importing.volcano_objects import CONFIGURATION
from fairopt.problem.files.schema import ObjectPart

#: Plugins that the policies have, or that choose nodes only.
_PLUGINS = ("proportion", "capacity", "drf", "gang", "priority", "conformance", "nodeorder", "binpack")
#: Actions that are played, and those that need not be: what waits is taken to be in the queue.
_PLAYED, _BESIDE = ("allocate", "preempt", "reclaim"), ("enqueue", "backfill")
#: Plugins that say who may be preempted, if nothing forbids it; the first are modelled.
_MODELLED = ("priority", "gang", "conformance")
_ASKED = (*_MODELLED, "cdp", "drf", "extender", "pdb", "tdm")
#: Who is critical by class, and where. Source: kubernetes, pkg/apis/scheduling/types.go; conformance.go.
_CRITICAL, _SYSTEM = ("system-cluster-critical", "system-node-critical"), "kube-system"


def settings_of(found: Mapping[str, ObjectPart], places: Places) -> dict[str, str]:
    """Return the actions of the scheduler's configuration, and who says whom "preempt" may stop; note others."""
    settings: dict[str, str] = {}
    for name, part in found.items():
        actions = [each.strip() for each in part.text("actions").split(",") if each.strip()]
        settings = {"scheduler": "volcano", "actions": ", ".join(each for each in actions if each in _PLAYED)}
        for each in actions:
            if each not in _PLAYED:
                why = "what waits is taken to be in the queue" if each in _BESIDE else "an action that is not modelled"
                places.note(f"{CONFIGURATION}, actions", name, each, why)
        tiers = [[(each.text("name"), each) for each in tier.parts("plugins")] for tier in part.parts("tiers")]
        for plugin, _ in (each for tier in tiers for each in tier):
            if plugin not in _PLUGINS:
                places.note(f"{CONFIGURATION}, plugins", name, plugin, "a plugin that is not modelled")
        if "preempt" in actions:
            settings["preemptable"] = _preemptable(name, tiers, places)
    return settings


def _preemptable(name: str, tiers: Sequence[Sequence[tuple[str, ObjectPart]]], places: Places) -> str:
    """Return the plugins that say who may be preempted: those of the first tier that has any."""
    on = [
        [plugin for plugin, part in tier if plugin in _ASKED and part.flag("enablePreemptable", True)] for tier in tiers
    ]
    first, *later = [each for each in on if each] or [[]]
    for plugin in (each for each in first if each not in _MODELLED):
        why = "whom it lets be preempted is not modelled"
        places.note(f"{CONFIGURATION}, plugins, enablePreemptable", name, plugin, why)
    for plugin in (each for tier in later for each in tier):
        why = "that it alone says who is preempted, where a tier before it names nobody, is not modelled"
        places.note(f"{CONFIGURATION}, plugins, enablePreemptable", name, plugin, why)
    return ", ".join(each for each in first if each in _MODELLED)


def is_critical(namespace: str, klass: str) -> bool:
    """Say whether the plugin "conformance" keeps a pod of a class from being stopped."""
    return namespace == _SYSTEM or klass in _CRITICAL


def in_order(pods: Sequence[Pod], settings: Mapping[str, str], *, running: bool) -> list[Pod]:
    """Return the pods of a group as "preempt" goes through them, where it is played: the highest priority first.

    Of running ones those that may not be stopped come first, and are the least that a group keeps; of waiting ones
    those that preempt nobody last.
    """
    if "preempt" not in settings.get("actions", "").split(", "):
        return list(pods)
    return sorted(pods, key=lambda pod: (running and pod.may_stop, -pod.priority, not pod.preempts))


def said_of(
    job: str,
    settings: Mapping[str, str],
    pods: Collection[Pod] = (),
    *,
    stops: bool,
    beyond: bool = False,
    preempts: bool = True,
) -> dict[str, str]:
    """Return the settings of a gang of a ``job``, or of some of its ``pods``, for the actions that are played.

    ``stops``: whether the group lets it be stopped; ``beyond``: it is not of the least pods that start together;
    ``preempts``: whether its class lets it.
    """
    actions = settings.get("actions", "").split(", ")
    preempts = preempts and all(pod.preempts for pod in pods)
    said = {} if preempts or not {"preempt", "reclaim"} & set(actions) else {"preempts": "false"}
    if "preempt" in actions:
        critical = "conformance" in settings.get("preemptable", "") and any(pod.critical for pod in pods)
        may = stops and not critical and all(pod.may_stop for pod in pods)
        said |= {"job": job, "preemptable": str(may).lower()}
        said |= {"beyond": "true"} if beyond else {}
        if pods:
            said["priority"] = str(min(pod.priority for pod in pods))
    return said
