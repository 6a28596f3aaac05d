/** The views, by the first part of the path. */
import { h } from "preact";
import { CapacityView } from "../capacity/capacity_view.js";
import { DecisionView } from "../decision/decision_view.js";
import { DecisionsView } from "../decision/decisions_view.js";
import { TryView } from "../decision/try_view.js";
import { FleetView } from "../fleet/fleet_view.js";
import { HostView } from "../host/host_view.js";
import { HostsView } from "../host/hosts_view.js";
import { LiveView } from "../live/live_view.js";
import { Head } from "../parts/elements.js";
import { PoliciesView } from "../policies/policies_view.js";
import { ChangesView } from "../settings/changes_view.js";
import { SettingsView } from "../settings/settings_view.js";
import { DrainView } from "../work/drain_view.js";
import { InstanceView } from "../work/instance_view.js";
import { InstancesView } from "../work/instances_view.js";
import { MigrationsView } from "../work/migrations_view.js";
import { OperationView } from "../work/operation_view.js";
import { OperationsView } from "../work/operations_view.js";

/** Place of each other path. @type {Record<string, string>} */
const PLACE_OF = { hosts: "", operations: "instances", migrations: "instances", drains: "instances" };

/** Return the place of a path. @param {string} first part of the path */
export const placeOf = (first) => PLACE_OF[first] ?? first;

/** The places of the page, in their order. */
export const PLACES = [
  { path: "", name: "Fleet", icon: "fleet" },
  { path: "decisions", name: "Decisions", icon: "decisions" },
  { path: "try", name: "Try", icon: "try" },
  { path: "live", name: "Live", icon: "live" },
  { path: "capacity", name: "Capacity", icon: "capacity" },
  { path: "instances", name: "Work", icon: "work" },
  { path: "policies", name: "Policies", icon: "policies" },
  { path: "settings", name: "Settings", icon: "settings" },
];

/** @type {Record<string, (parts: string[]) => {title: string, View: any}>} */
const VIEWS = {
  "": () => ({ title: "Fleet", View: FleetView }),
  try: () => ({ title: "Try a request", View: TryView }),
  live: () => ({ title: "Live", View: LiveView }),
  capacity: () => ({ title: "Capacity", View: CapacityView }),
  policies: () => ({ title: "Policies", View: PoliciesView }),
  settings: (parts) =>
    parts[1] === "changes" ? { title: "Changes", View: ChangesView } : { title: "Settings", View: SettingsView },
  decisions: (parts) =>
    parts[1] ? { title: "Decision", View: DecisionView } : { title: "Decisions", View: DecisionsView },
  hosts: (parts) => (parts[1] ? { title: parts[1], View: HostView } : { title: "Hosts", View: HostsView }),
  instances: (parts) =>
    parts[1] ? { title: "Instance", View: InstanceView } : { title: "Instances", View: InstancesView },
  operations: (parts) =>
    parts[1] ? { title: "Operation", View: OperationView } : { title: "Operations", View: OperationsView },
  migrations: () => ({ title: "Migrations", View: MigrationsView }),
  drains: () => ({ title: "Drains", View: DrainView }),
};

/** Return the view of a path. @param {string[]} parts @returns {{title: string, View: any}} */
export function viewOf(parts) {
  return VIEWS[parts[0] ?? ""]?.(parts) ?? { title: "Not found", View: NotFound };
}

function NotFound() {
  return h("div", {}, h(Head, { title: "Not found" }), h("div", { class: "card empty" }, "This page does not exist."));
}
