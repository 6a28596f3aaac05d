"""Metrics of decisions, operations, agents and Nova's message queue, each declared once."""

from roost.observe.families import Label, declare_counter, declare_gauge, declare_histogram

_DECISION_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.5, 10.0)
_WORK_SECONDS = (0.1, 1.0, 5.0, 30.0, 120.0, 600.0)

_KIND = Label("kind", "kinds of operations, 20, such as `build` and `live_migrate`")
_ACTION = Label("action", "actions of orders, about 20, such as `spawn`")

DECISIONS = declare_counter(
    "roost_decisions_total",
    "Durable decisions, and requests that ended with an error instead. Dry runs do not count.",
    area="decisions",
    labels=(Label("outcome", "`granted`, `refused`, `failed`"),),
)
REFUSALS = declare_counter(
    "roost_decision_refusals_total",
    "Refused decisions, by the rule that rejected the most hosts.",
    area="decisions",
    labels=(
        Label("rule", "enabled filters and pre-filters, `search`, and `none` (no rule rejected a host), about 40"),
        Label("reason", "`amount`, `trait`, `aggregate`, `class`, `tree`, `group`, `rule`, `no_hosts`, `conflict`"),
    ),
)
DECISION_SECONDS = declare_histogram(
    "roost_decision_seconds",
    "Seconds from the arrival of a request in the queue to its durable decision.",
    area="decisions",
    buckets=_DECISION_SECONDS,
)
SEARCH_SECONDS = declare_histogram(
    "roost_decision_search_seconds",
    "Seconds of a decision for the search, filters and weighers, without queue and commit.",
    area="decisions",
    buckets=_DECISION_SECONDS,
)

OPERATIONS_ENDED = declare_counter(
    "roost_operations_ended_total",
    "Ended operations.",
    area="operations",
    labels=(_KIND, Label("outcome", "`done`, `failed`")),
)
OPERATION_SECONDS = declare_histogram(
    "roost_operation_seconds",
    "Seconds from the request of an operation to its end.",
    area="operations",
    labels=(_KIND,),
    buckets=_WORK_SECONDS,
)
BUILDS_STARTED = declare_counter(
    "roost_builds_started_total", "Orders to build an instance on a host, retries included.", area="operations"
)
BUILD_RETRIES = declare_counter(
    "roost_build_retries_total", "Builds ordered on an alternate host after a failed attempt.", area="operations"
)
BUILDS_ENDED = declare_counter(
    "roost_builds_ended_total",
    "Ended builds on hosts.",
    area="operations",
    labels=(Label("outcome", "`succeeded`, `failed`"),),
)
ORDERS = declare_counter("roost_orders_total", "Orders to agents.", area="operations", labels=(_ACTION,))
STEP_LAG = declare_histogram(
    "roost_operation_lag_seconds",
    "Seconds from the due time of an operation's step until a conductor takes it.",
    area="operations",
    buckets=_DECISION_SECONDS,
)
TURN_SECONDS = declare_histogram(
    "roost_conductor_turn_seconds",
    "Seconds per turn of the conductor's loop, without its pauses.",
    area="operations",
    buckets=_DECISION_SECONDS,
)
LAST_TURN = declare_gauge(
    "roost_conductor_last_turn_timestamp_seconds",
    "Time of the last complete turn of the conductor's loop.",
    area="operations",
    mode="livemin",
)
CONDUCTOR_FAULTS = declare_counter(
    "roost_conductor_faults_total",
    "Turns of the conductor that failed, and operations set aside after an error.",
    area="operations",
)

AGENTS_WAITING = declare_gauge("roost_agents_waiting", "Agents waiting for orders.", area="agents", mode="livesum")
HEARTBEATS = declare_counter("roost_agent_heartbeats_total", "Stored heartbeats of agents.", area="agents")
REGISTRATIONS = declare_counter("roost_agent_registrations_total", "Registrations of agents.", area="agents")
AGENTS_LOST = declare_counter("roost_agents_lost_total", "Agents given up because of their silence.", area="agents")
ORDER_ANSWERS = declare_counter(
    "roost_order_answers_total",
    "Answers of agents to orders; only the first answer to an order counts.",
    area="agents",
    labels=(_ACTION, Label("outcome", "outcomes of answers: see the agent protocol")),
)

# These counters begin at 0, so that Prometheus sees their first increase.
for _outcome in ("granted", "refused", "failed"):
    DECISIONS.labels(_outcome)
for _outcome in ("succeeded", "failed"):
    BUILDS_ENDED.labels(_outcome)

NOVA_MESSAGES = declare_counter(
    "roost_nova_messages_total",
    "Messages received from Nova's message queue.",
    area="nova",
    labels=(
        Label(
            "kind",
            "`call`, `cast` (it needs no reply), `duplicate`, `malformed`, `refused` (of an unknown method or version)",
        ),
    ),
)
NOVA_REPLIES = declare_counter(
    "roost_nova_replies_total",
    "Calls by outcome, and replies without a caller.",
    area="nova",
    labels=(Label("outcome", "`answered`, `failed`; `dropped`: the queue of the caller is gone"),),
)
NOVA_CALLS_OPEN = declare_gauge("roost_nova_calls_open", "Calls in progress.", area="nova", mode="livesum")
NOVA_CONNECTED = declare_gauge(
    "roost_nova_connected",
    "1 if a connection to the message queue is open, otherwise 0.",
    area="nova",
    mode="livemin",
    labels=(Label("connection", "`receiver`, `sender`, `notifier`"),),
)
NOVA_NOTIFICATIONS = declare_counter(
    "roost_nova_notifications_total",
    "Notifications by outcome.",
    area="nova",
    labels=(
        Label("outcome", "`sent`: the broker has confirmed it; `dropped`: too many wait, or the broker refused it"),
    ),
)
NOVA_SHADOW = declare_counter(
    "roost_nova_shadow_total",
    "Requests whose choices by nova-scheduler and by Roost were compared, in shadow mode.",
    area="nova",
    labels=(
        Label(
            "verdict",
            "`same`; `equal`: another host with an equal score; `other`: another score; `only_nova`, `only_roost`: the "
            "other one refused; `unknown`: Roost could not decide",
        ),
    ),
)
NOVA_RECONNECTS = declare_counter(
    "roost_nova_reconnects_total", "Connections to the message queue after a loss.", area="nova"
)
