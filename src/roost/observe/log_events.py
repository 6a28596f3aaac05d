"""Every event of the log, with its level and meaning; ``docs/logging.md`` has the same table."""

from collections.abc import Mapping
from typing import NamedTuple

from roost.model.settings.log_settings import Level


class LogEvent(NamedTuple):
    """The level and the meaning of one event."""

    level: Level
    meaning: str


def _events(level: Level, **meanings: str) -> dict[str, LogEvent]:
    return {name: LogEvent(level, meaning) for name, meaning in meanings.items()}


# What clients and conductors do.
ACTS: Mapping[str, LogEvent] = {
    **_events(
        "info",
        change="A client changed data, or its change was refused: `kind`, `object`, `result`, client, and details.",
        story="A line of the story of an instance, operation or agent, such as `agent.ready`: `kind` and details.",
        request="An answered request, with `placement.log_requests`.",
        session_begins="A browser signed in: client, `user`, `project` and `roles`.",
    ),
    **_events(
        "warning",
        login_refused="A request had no valid token; `client` is its address.",
        access_refused="A policy refused a request, or the token does not permit this request.",
    ),
}
SERVERS: Mapping[str, LogEvent] = {
    **_events(
        "info",
        server_begins="A server process accepts requests.",
        server_ends="A server process has stopped.",
        conductor_begins="A conductor has started.",
        settings_loaded="The settings were read again and are in use.",
        settings_unchanged="The settings were read again, and are the same.",
        workers_replaced="New worker processes have replaced all previous ones.",
        certificate_loaded="The TLS certificate was read again.",
        tokens_read="The token file was read again.",
        database_is_well="Writes of the deciding thread succeed again.",
        database_usable="Requests of clients succeed again.",
        webhook_is_well="The receiver of the webhook accepts events again.",
        placement_is_well="The remote Placement answers again.",
        column_file_refused="A process reads all rows of the database, because its column file is not valid: `reason`.",
        wait_ends="A client waited for an operation until the server or the database ended the wait.",
        poll_ends="An agent waited for orders until the server or the database ended the wait.",
        plugin_log="A line of a plug-in, at the level of the plug-in.",
        python_log="A line of Python's logging from a module of Roost, at its level.",
        keystone="A line of the Keystone middleware, at its level.",
    ),
    **_events(
        "warning",
        lines_dropped="The reader of the log was too slow, so lines were dropped; their number.",
        settings_refused="The new settings are wrong; the server keeps the previous ones.",
        certificate_refused="The new TLS certificate is wrong; the server keeps the previous one.",
        tokens_kept="The new token file is wrong; the server keeps the previous tokens.",
        database_fails="The deciding thread gets an error from the database.",
        database_failed_over="Another database server took over.",
        changes_lost="Changes that this process knew are not in the database; it reads the whole database again.",
        newer_peer="A newer Roost wrote an unknown change; this process reads all tables; at most one line a minute.",
        database_unusable="Requests of clients fail because of the database; at most one line a minute.",
        evidence_size_unknown="The size of all evidence cannot be measured; it may exceed `store.evidence_max_bytes`.",
        old_rows_kept="Old rows cannot be deleted because the database fails; Roost tries again after more commits.",
        column_file_fails="The column file cannot be written; `problem` says why.",
        commits_not_synchronous="A failover of PostgreSQL may lose acknowledged commits.",
        webhook_fails="The receiver of the webhook does not accept events.",
        claim_kept="The remote Placement refuses to take allocations of `consumer` back: correct them there.",
        placement_fails="The remote Placement does not answer.",
        connections_refused="Connections were refused because of `placement.connections_max`.",
        connections_max_lowered="The limit of open files allows fewer connections than the setting.",
        reader_cannot_start="The reader process cannot start.",
        worker_ended="A worker process ended and starts again.",
        worker_not_replaced="A new worker process cannot start; the previous ones stay.",
        service_disabled="A conductor disabled a service after failed builds.",
    ),
    **_events(
        "error",
        fault="An unexpected error, with its traceback unless the message explains it.",
    ),
}
# The databases of an existing Nova.
NOVA_DATABASES: Mapping[str, LogEvent] = {
    **_events(
        "info",
        cell_answers="The database of a cell of Nova answers again.",
        host_mapped="A new host of Nova was mapped to its cell.",
        nova_shadow="One request in shadow mode: the choices of nova-scheduler and of Roost, `verdict`, `reason`.",
        nova_shadow_ends="The end of shadow mode: the number of requests by verdict.",
        nova_instances_are_placed="No instance of Nova waits for its host or its allocations any more.",
        nova_databases_are_well="Nova's API database answers again.",
        neutron_is_well="Neutron answers again.",
    ),
    **_events(
        "warning",
        cell_silent="The database of a cell of Nova cannot be read; its hosts stay as they were, and are not chosen.",
        compute_node_invalid="The row of a compute node of Nova is invalid; the node is not chosen.",
        hosts_not_discovered="New hosts of a cell of Nova could not be mapped.",
        nova_databases_fail="Nova's API database cannot be read; hosts and instances stay as they were.",
        neutron_fails="Neutron does not answer, or refuses the login; requests with networks fail.",
        nova_host_refused="A host of Nova cannot be stored, for the reason in this line; it stays as it was.",
        nova_instances_wait="Instances of Nova have no host or no allocations in Roost; they are tried again.",
        nova_notifications_dropped="Notifications were dropped; at most one line a minute, with their number.",
        nova_notifications_ignored="Roost does not send the notifications of a driver or broker in nova.conf.",
        nova_write_failed="A host mapping or the service record cannot be written to Nova's databases.",
        nova_aggregate_refused="An aggregate of Nova cannot be stored, for the reason in this line.",
    ),
}
AGENTS: Mapping[str, LogEvent] = {
    **_events(
        "info",
        agent_begins="An agent has started.",
        credentials_read="The server refused the token, and the agent read another one from its file.",
        server_is_back="The server in this line has answered all pending requests.",
        node_resources="The resources of a node, when they change.",
        node_dropped="The providers of a permanently removed node were deleted.",
        reshape="The fake driver moved classes to another provider.",
        reshape_begun="A reshape begins.",
        allocation_released="The allocation of a deleted or moved instance was released.",
        devices_healed="A guest got the missing allocation of its PCI device.",
        saved_image_dropped="The image of a deleted instance was dropped.",
    ),
    **_events(
        "warning",
        server_is_away="A request to the server failed; the agent tries again.",
        credentials_refused="The server refused the token; the agent reads its file again for `wait_s` seconds.",
        credentials_unreadable="The file of a refused token cannot be read; the agent tries again.",
        register_refused="The server refused to register an agent.",
        report_refused="The server refused the facts of a node.",
        poll_failed="The server refused a poll.",
        driver_not_ready="The driver cannot start yet.",
        node_not_updated="An update of a node failed.",
        node_left="A permanently removed node still has allocations.",
        provider_config="A provider config file has no effect, or only a part of it.",
        provider_in_use="A provider has allocations, so it stays.",
        placement_away="Placement does not answer.",
        candidates_refused="Placement refused a search for candidates.",
        claim_refused="Placement refused a claim.",
        move_refused="Placement refused to move allocations.",
        allocations_not_cleaned="Old allocations of a node could not be checked.",
        allocation_kept="The allocation of a deleted or moved instance has just changed, so it stays for now.",
        allocation_doubtful="An allocation stays, because its instance may still need it.",
        nodes_not_dropped="The providers of a permanently removed node could not be deleted.",
        uses_differ="The allocation of a guest differs from its use.",
        device_gone="A PCI device with allocations no longer exists.",
        saved_images_stay="The agent could not check saved images.",
    ),
    **_events(
        "error",
        agent_ends="An agent ended because of a problem.",
        hangs="A call of the driver takes too long.",
    ),
}
QUEUES: Mapping[str, LogEvent] = {
    **_events(
        "info",
        rpc_broker_connected="A connection to a broker of Nova's message queue is ready.",
        rpc_queue_differs="An exchange, queue or binding has other flags than the options, and is used as it is.",
    ),
    **_events(
        "warning",
        rpc_broker_lost="A connection to a broker was lost or cannot be opened; it is opened again.",
        rpc_message_malformed="A message without the form of oslo.messaging was dropped.",
        rpc_message_refused="A message has an unknown method or version.",
        rpc_answer_ignored="A call was answered twice; the second answer was ignored.",
        rpc_reply_dropped="A reply was dropped, because the queue of its caller is gone.",
        rpc_calls_left="The server stopped before calls were answered; their number.",
    ),
}
EVENTS: Mapping[str, LogEvent] = {**ACTS, **SERVERS, **NOVA_DATABASES, **AGENTS, **QUEUES}
