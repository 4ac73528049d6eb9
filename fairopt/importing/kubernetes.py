"""Objects of Kubernetes, which most schedulers' are: which fields they have, and what pods ask for."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from fairopt.errors import BadInput, NotCapable, require
from fairopt.importing.documents import AMOUNTS, found_in, yaml_documents
from fairopt.importing.unplaced import BOOKKEEPING, TAKEN, TOGETHER, Places
from fairopt.numbers import in_full
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import shown
from fairopt.program import INFINITY


def fields(why: str, names: str, before: str = "") -> dict[str, str]:
    """Return a table of fields, by dotted path: why each of the names after ``before`` has no place, or `TAKEN`."""
    return {f"{before}{name}": why for name in names.split()}


#: Of every object. Source: apimachinery/pkg/apis/meta/v1/types.go, TypeMeta and ObjectMeta.
OBJECT: Mapping[str, str] = fields(TAKEN, "apiVersion kind metadata.name metadata.namespace") | fields(
    BOOKKEEPING,
    "annotations.* creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation "
    "labels.* managedFields ownerReferences resourceVersion selfLink uid",
    "metadata.",
)
#: Of nodes. Source: api/core/v1/types.go.
NODE: Mapping[str, str] = (
    {**OBJECT}
    | fields(TAKEN, "spec.unschedulable status.allocatable")
    | fields(BOOKKEEPING, "podCIDR podCIDRs providerID configSource externalID", "spec.")
    | fields(
        BOOKKEEPING,
        "addresses capacity conditions config daemonEndpoints declaredFeatures features images nodeInfo phase "
        "runtimeHandlers volumesAttached volumesInUse",
        "status.",
    )
)
_CONTAINER = (
    "name image command args workingDir ports envFrom env volumeMounts volumeDevices livenessProbe readinessProbe "
    "startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin "
    "stdinOnce tty resizePolicy restartPolicyRules"
)
_POD = (
    "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds dnsPolicy dnsConfig serviceAccountName "
    "serviceAccount automountServiceAccountToken hostNetwork hostPID hostIPC hostUsers hostname hostnameOverride "
    "subdomain hostAliases shareProcessNamespace securityContext imagePullSecrets enableServiceLinks readinessGates os "
    "setHostnameAsFQDN schedulerName"
)


def pod_fields(before: str, placing: str) -> dict[str, str]:
    """Return the fields of a PodSpec at ``before``; ``placing`` says why it does not matter where pods are to run."""
    return (
        fields(TAKEN, "overhead", before)
        | fields(placing, "nodeSelector affinity tolerations topologySpreadConstraints runtimeClassName", before)
        | fields(BOOKKEEPING, _POD, before)
        | {
            path: why
            for kind in ("containers", "initContainers")
            for why, names in ((TAKEN, "resources.requests resources.limits restartPolicy"), (BOOKKEEPING, _CONTAINER))
            for path, why in fields(why, names, f"{before}{kind}[].").items()
        }
    )


def own_names(domains: str, known: str = "", before: str = "metadata.") -> dict[str, str]:
    """Return the fields of labels and annotations of a scheduler's own domains: those that are not ``known`` are noted.

    Both are names with blanks between; known ones say nothing about who gets what that its objects do not say.
    """
    kinds = [f"{before}labels.", f"{before}annotations."]
    listed = {f"{kind}{domain}*": "no label or annotation that is known here" for domain in domains.split()
              for kind in kinds}  # fmt: skip
    return listed | {f"{kind}{name}": BOOKKEEPING for name in known.split() for kind in kinds}


def named(part: ObjectPart) -> str:
    """Return the name of an object, after its namespace where it has one."""
    metadata = part.part("metadata")
    return joined(metadata.text("namespace"), metadata.text("name"))


def joined(space: str, name: str) -> str:
    """Return a name after its namespace, where it has one."""
    return f"{space}/{name}" if space and name else space or name


def listed_in(part: ObjectPart, key: str, kinds: type | tuple[type, ...] = str, wanted: str = "texts") -> list[Any]:
    """Return the list there, of texts or what else the ``wanted`` are; empty where there is none.

    Errors: `BadInput` with the place.
    """
    own = part.value.get(key)
    known = isinstance(own, list) and all(isinstance(each, kinds) for each in own)
    require(own is None or known, shown(own), part.place_of(key), f"Give a list of {wanted}")
    return list(own or ())


def pod_requests(pod: ObjectPart, *, limits: bool = True) -> dict[str, Fraction]:
    """Return what one pod takes: its containers together, or its largest init container, and its overhead.

    ``limits`` stand in for requests that are missing. Source: component-helpers/resource/helpers.go, PodRequests.
    """

    def asked(container: ObjectPart) -> dict[str, Fraction]:
        given = container.part("resources")
        most = given.read("limits", AMOUNTS, {}) if limits else {}
        return {**most, **given.read("requests", AMOUNTS, {})}

    total: dict[str, Fraction] = {}
    for each in pod.parts("containers"):
        add(total, asked(each))
    initial = pod.parts("initContainers")
    if not initial:  # nearly always
        add(total, pod.read("overhead", AMOUNTS, {}))
        return total
    peak: dict[str, Fraction] = {}
    beside: dict[str, Fraction] = {}
    for each in initial:
        own = asked(each)
        if each.text("restartPolicy") == "Always":  # it runs on beside the containers
            add(beside, own)
            own = {}
        for name in {*own, *beside}:
            at_once = own.get(name, Fraction(0)) + beside.get(name, Fraction(0))
            peak[name] = max(peak.get(name, Fraction(0)), at_once)
    add(total, beside)
    total = {name: max(total.get(name, Fraction(0)), peak.get(name, Fraction(0))) for name in (*total, *peak)}
    add(total, pod.read("overhead", AMOUNTS, {}))
    return total


#: So many pods that ask for different things are remembered.
MOST_ALIKE = 5_000


def requests_in(pod: Mapping[str, Any]) -> list[Any]:
    """Return all that `pod_requests` reads of a pod: pods with the same ask for the same."""
    keys = "resources", "restartPolicy"
    return [some_of(pod.get("containers"), keys), some_of(pod.get("initContainers"), keys), pod.get("overhead")]


def key_of(values: list[Any]) -> bytes | str:
    """Return what stands for values of JSON or YAML: nothing else has the same."""
    try:
        return marshal.dumps(values, 2)  # half the time of a text; later versions write alike values in several ways
    except ValueError:  # it has a Decimal
        return repr(values)


def some_of(values: Any, keys: Iterable[str]) -> Any:
    """Return what each object of a list has at some keys, as a tuple, which JSON has none; what is none as it is."""
    if type(values) is not list:
        return values
    return [(*map(each.get, keys),) if type(each) is dict else each for each in values]


def add(total: dict[str, Fraction], more: Mapping[str, Fraction], times: int = 1) -> None:
    """Add amounts to others, each ``times``."""
    for name, amount in more.items():
        part = amount if times == 1 else amount * times
        total[name] = total[name] + part if name in total else part


def documents(paths: Iterable[AnyPath]) -> Iterable[tuple[AnyPath, ObjectPart]]:
    """Yield the objects in files that kubectl wrote, each with its file."""
    return ((path, part) for path in paths for part in found_in(path))


def unpacked(
    found: Iterable[tuple[AnyPath, ObjectPart]], key: str, group: str, kind: str
) -> Iterable[tuple[AnyPath, ObjectPart]]:
    """Yield objects, and in the place of a ConfigMap that has a ``key`` the YAML document in it.

    A document in it, or one of the API ``group`` that stands alone, has the name of the ConfigMap, or else of its kind.
    One without a kind is of that ``kind``. Errors: `BadInput` for what is no YAML.
    """
    for path, part in found:
        own = part.text("kind")
        text = part.part("data").text(key) if own == "ConfigMap" else ""
        if not text:
            alone = own == kind and part.text("apiVersion").rpartition("/")[0] == group
            yield path, ObjectPart(part.place, {"metadata": {"name": kind}, **part.value}) if alone else part
            continue
        place = f"{part.place}, data, {key}"
        try:
            read = [value for _, value in yaml_documents(text)]
        except BadInput as error:
            error.place = f"{place}, {error.place}"
            raise
        for value in read:
            require(
                isinstance(value, Mapping), shown(value), place, "Give keys and values, as the scheduler takes them"
            )
            named = {
                "metadata": {"name": part.part("metadata").text("name")},
                "kind": kind,
                "apiVersion": f"{group}/v1",
            }
            yield path, ObjectPart(place, {**named, **value})


class Pod(NamedTuple):
    """A pod that runs, or has a node, or waits: what it ``takes``, and whether it ``may_stop``.

    ``sliced``: it asks for slices of GPUs, of which nobody says how many GPUs they are. ``devices``: on how many GPUs
    it takes how much of each. ``node``: where it runs, "" while it waits. ``groups``: the names of the GPUs that it
    shares, as far as the file says them. ``priority``, ``preempts``, ``critical``: for Volcano's action "preempt".
    """

    runs: bool
    takes: dict[str, Fraction]
    may_stop: bool = True
    sliced: bool = False
    devices: tuple[Fraction, int] = (Fraction(0), 0)
    node: str = ""
    groups: tuple[str, ...] = ()
    priority: int = 1
    preempts: bool = True
    critical: bool = False


class Stock(NamedTuple):
    """What is counted: GPU types with their resources, other resources, how much of each, and the flavor of goods."""

    types: Mapping[str, str]
    others: Sequence[str]
    amounts: Mapping[str, Fraction]
    flavor: str

    def has(self, name: str) -> bool:
        """Say whether a type or a resource is counted."""
        return name in self.types or name in self.others

    @property
    def goods(self) -> dict[Good, Fraction]:
        """The other resources, and how much of each there is."""
        return {Good(name, self.flavor): self.amounts[name] for name in self.others}

    def row(self, amounts: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """Return amounts by the names of columns; what is no column is left out."""
        goods = {name: str(Good(name, self.flavor)) for name in self.others}
        return {goods.get(name, name): amount for name, amount in amounts.items() if self.has(name)}


#: Objects by kind and name, or what a reader of that kind kept of each.
Objects: TypeAlias = Mapping[str, dict[str, Any]]


def objects(
    found: Iterable[tuple[AnyPath, ObjectPart]],
    kinds: Mapping[str, tuple[str, Mapping[str, str]]],
    places: Places,
    readers: Mapping[str, Callable[[str, ObjectPart], Any]] = MappingProxyType({}),
) -> Objects:
    """Return objects by kind and name; those of other kinds, and fields that are not read, have no place.

    ``kinds``: the API group of each kind that is read, and its fields. ``readers``: by kind, what returns all
    that is kept of an object, of its name and itself; without one the object is.

    Errors: `BadInput` for an object without a kind or a name, and for one that stands twice; those of readers.
    """
    known: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    last, called, left = None, "", iter(found)
    while some := list(islice(left, TOGETHER)):
        new = dict[str, dict[str, ObjectPart]]()
        for path, part in some:
            if path is not last:
                last, called = path, f"{path}: "  # a path takes long to say what it is called
            try:
                _sort(called, part, kinds, known, new, places)
            except BadInput:
                with naming(path, part.place):
                    raise
        for kind, parts in new.items():
            places.of_all(kind, [(name, part.value) for name, part in parts.items()], kinds[kind][1])
            read = readers.get(kind)
            known[kind].update(parts if read is None else {name: read(name, part) for name, part in parts.items()})
    return known


def _sort(
    called: str,
    part: ObjectPart,
    kinds: Mapping[str, tuple[str, Mapping[str, str]]],
    known: Objects,
    new: dict[str, dict[str, ObjectPart]],
    places: Places,
) -> None:
    """Put an object of a file, which is so ``called``, among the new ones of its kind, or note it."""
    value = part.value
    kind, version, metadata = value.get("kind"), value.get("apiVersion"), value.get("metadata")
    if type(metadata) is dict and type(kind) is type(version) is str:  # nearly always
        own, space = metadata.get("name"), metadata.get("namespace", "")
    else:
        kind, version = part.text("kind"), part.text("apiVersion")
        own = space = None
    if not (type(own) is type(space) is str):
        own, space = part.part("metadata").text("name"), part.part("metadata").text("namespace")
    name = f"{space}/{own}" if space and own else space or own
    if not kind:
        raise BadInput("no kind", place=part.place, remedy="Give objects as kubectl get -o json prints them")
    if kind not in kinds or version.rpartition("/")[0] != kinds[kind][0]:
        places.note(f"kind {kind}", name, version or "no apiVersion", "not an object that is read")
        return
    beside = new.setdefault(kind, {})
    if not own or name in known[kind] or name in beside:
        got = f"{kind} {name!r} stands twice" if own else f"{kind} without a name"
        raise BadInput(got, place=part.place, remedy="Give each object once, with its name, as kubectl prints it")
    beside[name] = ObjectPart(f"{called}{kind} {name!r}", value)


def is_ready(node: ObjectPart) -> bool:
    """Say whether a node is ready, as far as its conditions say."""
    conditions = node.part("status").parts("conditions")
    return all(each.text("status") == "True" for each in conditions if each.text("type") == "Ready")


def apply_list(items: Sequence[object]) -> str:
    """Return objects as JSON that ``kubectl apply --server-side -f`` takes."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


def written_quantity(amount: Any) -> str:
    """Return a quantity: whole, or in thousandths. Errors: `NotCapable` for what neither can say."""
    if amount == INFINITY or amount < 0 or (exact := Fraction(amount) * 1000).denominator != 1:
        raise NotCapable(f"{amount} is no quantity: those are multiples of 1/1000 from 0")
    return in_full(exact / 1000) if exact % 1000 == 0 else f"{in_full(exact)}m"
