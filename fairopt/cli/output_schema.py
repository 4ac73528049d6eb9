"""The JSON Schema of what every command prints with ``--json``. Keys are added over time, never renamed or dropped."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairopt.audit import Audit, Explanation, SchedulerPlan, WhatIf
from fairopt.audit.series import AuditSeries
from fairopt.cli import (
    benching,
    data,
    forms,
    generating,
    incentives,
    listing,
    misreporting,
    proving,
    round_json,
    scheduling,
    study_tables,
)
from fairopt.experiment.studies.results import StudyResults
from fairopt.frontier import Frontier
from fairopt.properties import Verdict
from fairopt.report import VERSION, ResultForm, Schema, listed, schema_of

#: What is printed by command; of commands under another one by both names.
OUTPUTS: Mapping[str, Schema] = MappingProxyType(
    {
        name: schema_of(each)
        for name, each in {
            "solve": {"anyOf": [forms.SOLVED.schema(), schema_of(data.WRITTEN)]},
            "verify": forms.VERIFIED,
            "compare": {"anyOf": [forms.COMPARISON.schema(), schema_of(StudyResults.form)]},
            "audit": {"anyOf": [Audit.form.schema(), AuditSeries.form.schema()]},
            "explain": Explanation.form,
            "whatif": WhatIf.form,
            "plan": SchedulerPlan.form,
            "policies": listed(listing.POLICY),
            "backends": listed(listing.BACKEND),
            "properties": listed(listing.PROPERTY),
            "plugins": listed(listing.PLUGIN),
            "datasets": {"anyOf": [listed(data.DATASET), schema_of(data.WRITTEN)]},
            "generate": {"anyOf": [listed(generating.GENERATOR), schema_of(generating.GENERATED)]},
            "import": data.WRITTEN,
            "check": proving.DECIDED,
            "claims": listed(proving.CLAIM),
            "lie": misreporting.MISREPORT,
            "frontier": Frontier.form,
            "incentives": incentives.INCENTIVES,
            "run": {"anyOf": [round_json.RUN.schema(), schema_of(data.WRITTEN)]},
            "schedule": {"anyOf": [scheduling.SCHEDULE.schema(), schema_of(data.WRITTEN)]},
            "study run": StudyResults.form,
            "study merge": study_tables.MERGED,
            "study report": StudyResults.form,
            "study list": listed(study_tables.LISTED),
            "bench run": benching.LINE,
            "bench list": benching.INSTALLED,
            "bench report": benching.REPORT,
            "bench export": benching.EXPORTED,
            "bench figures": benching.FILES,
        }.items()
    }
)
#: Forms that others refer to by their names.
_PARTS: tuple[ResultForm, ...] = (
    *(forms.COMPARED, Verdict.form, StudyResults.form, listing.POLICY, listing.BACKEND, listing.PROPERTY),
    *(listing.PLUGIN, data.DATASET, data.WRITTEN, generating.GENERATOR, generating.GENERATED, benching.FILES),
    *(proving.CHECKED, proving.CLAIM),
)


def output_schema(command: str = "") -> Schema:
    """Return the JSON Schema (draft 2020-12) of what ``command`` prints with --json; "": the parts, by command.

    >>> output_schema("solve")["$ref"]
    '#/$defs/solve'
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://fairopt.invalid/output.schema.json",
        "title": f"fairopt --json, version {VERSION}",
        "description": "What the commands print with `--json`. Other keys may stand beside those that are listed.",
        **({"$ref": f"#/$defs/{command}"} if command else {}),
        "$defs": {
            **OUTPUTS,
            **{each.name: each.schema() for each in _PARTS},
        },
    }
