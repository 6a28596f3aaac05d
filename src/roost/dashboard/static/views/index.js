/**
 * The views, by the first part of the path. The page has the fleet from the start; it loads the others when it needs one
 * of them, or when it has nothing else to do.
 */
import { h } from "preact";
import { follow } from "../fleet/fleet_data.js";
import { FleetView } from "../fleet/fleet_view.js";
import { Head } from "../parts/elements.js";
import { LateView } from "./late_view.js";

const REST_MS = 2000; // from the start of the page until all views are loaded

/** A view that the page does not have yet. @param {(views: typeof import("./other_views.js")) => any} pick */
const later = (pick) => new LateView(async () => pick(await import("./other_views.js")));

const late = {
  capacity: later((views) => views.CapacityView),
  decision: later((views) => views.DecisionView),
  decisions: later((views) => views.DecisionsView),
  fleet: new LateView(async () => FleetView),
  host: later((views) => views.HostView),
  hosts: later((views) => views.HostsView),
  live: later((views) => views.LiveView),
  policies: later((views) => views.PoliciesView),
  changes: later((views) => views.ChangesView),
  settings: later((views) => views.SettingsView),
  attempt: later((views) => views.TryView),
  drain: later((views) => views.DrainView),
  instance: later((views) => views.InstanceView),
  instances: later((views) => views.InstancesView),
  migrations: later((views) => views.MigrationsView),
  operation: later((views) => views.OperationView),
  operations: later((views) => views.OperationsView),
};

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

/** @typedef {{title: string, view: LateView | null}} Shown */

/** @type {Record<string, (parts: string[]) => Shown>} */
const VIEWS = {
  "": () => ({ title: "Fleet", view: late.fleet }),
  try: () => ({ title: "Try a request", view: late.attempt }),
  live: () => ({ title: "Live", view: late.live }),
  capacity: () => ({ title: "Capacity", view: late.capacity }),
  policies: () => ({ title: "Policies", view: late.policies }),
  settings: (parts) =>
    parts[1] === "changes" ? { title: "Changes", view: late.changes } : { title: "Settings", view: late.settings },
  decisions: (parts) =>
    parts[1] ? { title: "Decision", view: late.decision } : { title: "Decisions", view: late.decisions },
  hosts: (parts) => (parts[1] ? { title: parts[1], view: late.host } : { title: "Hosts", view: late.hosts }),
  instances: (parts) =>
    parts[1] ? { title: "Instance", view: late.instance } : { title: "Instances", view: late.instances },
  operations: (parts) =>
    parts[1] ? { title: "Operation", view: late.operation } : { title: "Operations", view: late.operations },
  migrations: () => ({ title: "Migrations", view: late.migrations }),
  drains: () => ({ title: "Drains", view: late.drain }),
};

/** Return the view of a path; null: the path names none. @param {string[]} parts @returns {Shown} */
export function viewOf(parts) {
  return VIEWS[parts[0] ?? ""]?.(parts) ?? { title: "Not found", view: null };
}

/** Begin to load the view of a path and its data, before the session is known; later the other views. @param {string[]} parts */
export function begin(parts) {
  const { view } = viewOf(parts);
  void view?.load();
  if (view === late.fleet) follow();
  // An upgraded server does not have the modules of this page any more.
  setTimeout(async () => {
    await Promise.all(Object.values(late).map((each) => each.load()));
    performance.mark("views-loaded");
  }, REST_MS);
}

/** What a path shows. @param {{parts: string[]}} props */
export function View({ parts }) {
  const { view } = viewOf(parts);
  if (view) return h(view.Component, { parts });
  return h("div", {}, h(Head, { title: "Not found" }), h("div", { class: "card empty" }, "This page does not exist."));
}
