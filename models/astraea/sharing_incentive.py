"""Batch sharing incentive with somebody to compare with: the same packing, each tenant on its own part."""

from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.properties.schedules.tenants import BatchSharingIncentive

#: The property as it is registered.
BATCH_SHARING_INCENTIVE = BatchSharingIncentive(BatchPrivate())
