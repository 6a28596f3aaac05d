"""The bodies and answers of the client library: the types that the server itself reads and writes."""

from roost.api.v1.schemas.capacity import CapacityBody
from roost.api.v1.schemas.decisions import (
    BatchedAnswer,
    DecisionBody,
    DecisionsQuery,
    ExplanationBody,
    InstanceRequestBody,
    NextBody,
    NextStep,
    ShownDecision,
    ShownPick,
    ShownWhy,
)
from roost.api.v1.schemas.hosts import DetailedHost, HostsQuery, ProviderTree, ServicePatch, ShownHost, ShownService
from roost.api.v1.schemas.instances import (
    AcceptedInstances,
    DetailedInstance,
    InstancesBody,
    InstancesQuery,
    MigrateBody,
    OperationReference,
    RebuildBody,
    ResizeBody,
    RevertBody,
    ShownInstance,
)
from roost.api.v1.schemas.migrations import TargetBody
from roost.api.v1.schemas.operations import ListedOperation, OperationsQuery, ShownOperation
from roost.api.v1.schemas.plans import (
    ApplyBody,
    BalanceBody,
    ConsolidationBody,
    DrainBody,
    DrainPlan,
    HostsDrainBody,
    MoveBody,
    RehearsedPlan,
    RoomBody,
)
from roost.api.v1.schemas.status import FleetStatus
from roost.api.v1.wire.problem_details import ProblemDetails
from roost.client.library.event_lines import Event
from roost.model.documents.request_document import (
    DestinationEntry,
    FlavorEntry,
    ImageEntry,
    MoveEntry,
    RequestDocument,
    ResourceGroupEntry,
)
from roost.model.evidence.capacity import AddedHosts, Capacity
from roost.model.evidence.move_plans import BalancePlan, ConsolidationPlan, DrainMoves, RoomPlan
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor

__all__ = [
    "AcceptedInstances",
    "AddedHosts",
    "ApplyBody",
    "BalanceBody",
    "BalancePlan",
    "BatchedAnswer",
    "Capacity",
    "CapacityBody",
    "ConsolidationBody",
    "ConsolidationPlan",
    "DecisionBody",
    "DecisionsQuery",
    "DestinationEntry",
    "DetailedHost",
    "DetailedInstance",
    "DrainBody",
    "DrainMoves",
    "DrainPlan",
    "Event",
    "ExplanationBody",
    "Flavor",
    "FlavorEntry",
    "FleetStatus",
    "HostsDrainBody",
    "HostsQuery",
    "ImageEntry",
    "InstanceRequestBody",
    "InstancesBody",
    "InstancesQuery",
    "ListedOperation",
    "MigrateBody",
    "MoveBody",
    "MoveEntry",
    "NextBody",
    "NextStep",
    "OperationReference",
    "OperationsQuery",
    "ProblemDetails",
    "ProviderTree",
    "RebuildBody",
    "RehearsedPlan",
    "RequestDocument",
    "ResizeBody",
    "ResourceGroupEntry",
    "RevertBody",
    "RoomBody",
    "RoomPlan",
    "ServicePatch",
    "ShownDecision",
    "ShownHost",
    "ShownInstance",
    "ShownOperation",
    "ShownPick",
    "ShownService",
    "ShownWhy",
    "Summary",
    "TargetBody",
]
