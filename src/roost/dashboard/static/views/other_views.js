/** All views but the fleet. They are exports of one module, so the bundle has one file for them. */
export { CapacityView } from "../capacity/capacity_view.js";
export { DecisionView } from "../decision/decision_view.js";
export { DecisionsView } from "../decision/decisions_view.js";
export { TryView } from "../decision/try_view.js";
export { HostView } from "../host/host_view.js";
export { HostsView } from "../host/hosts_view.js";
export { LiveView } from "../live/live_view.js";
export { PoliciesView } from "../policies/policies_view.js";
export { ChangesView } from "../settings/changes_view.js";
export { SettingsView } from "../settings/settings_view.js";
export { DrainView } from "../work/drain_view.js";
export { InstanceView } from "../work/instance_view.js";
export { InstancesView } from "../work/instances_view.js";
export { MigrationsView } from "../work/migrations_view.js";
export { OperationView } from "../work/operation_view.js";
export { OperationsView } from "../work/operations_view.js";
